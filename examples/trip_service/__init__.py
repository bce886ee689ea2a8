"""A web service whose conversations three workers go on with: see `__main__.py`."""
