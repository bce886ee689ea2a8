"""What a notebook shows of a value, where the page can be made."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["html_of"]


def html_of(value: Any) -> str | None:
    """The value as a fragment of the page, for `_repr_html_`.

    `None` without the extra `cli`, which has the page's templates; a notebook then shows the
    `repr`.
    """
    try:
        # Named as text, since the page needs everything else.
        fragment = import_module("lutumpy.page.fragment")
    except ImportError:
        return None
    html: str = fragment.render_fragment(value)
    return html
