"""A model of several, for `python -m examples.fallback_model`."""
