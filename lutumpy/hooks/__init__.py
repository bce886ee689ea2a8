"""Who decides: slots, decisions, registries. pluggy is the registry underneath; the pipeline over it is typed, async and sync."""
