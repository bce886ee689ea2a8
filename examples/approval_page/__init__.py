"""Calls that a person decides on a web page: see `__main__.py`."""
