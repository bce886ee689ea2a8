"""What can be called: signatures to models, models to definitions, definitions to toolsets."""
