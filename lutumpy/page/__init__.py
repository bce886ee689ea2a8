"""A conversation as a page to look at: one HTML file, without network, safe whatever the transcript
holds.

Needs the `cli` extra (jinja2).
"""

from __future__ import annotations

from lutumpy.page.document import render, write

__all__ = ["render", "write"]
