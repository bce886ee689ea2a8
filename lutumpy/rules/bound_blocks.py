"""Reasoning that is bound to what comes before it, as it is found in a request of any API.

What is bound differs by API, and is in the module `prefix` of its rules.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from lutumpy.plain.values import dataclass

__all__ = ["BoundBlock", "Enforcement", "ReasoningBinding", "write_bound"]

Enforcement = Literal["everybody", "new_accounts"]
"""Whose requests are refused when the beginning in front of signed reasoning has changed."""


@dataclass(frozen=True, slots=True)
class BoundBlock:
    """A piece of reasoning in a request, or in the answer behind it.

    Attributes:
        path: Where it is, as `messages.1.content.0`.
        seal: What it is known by: its signature, or what it holds encrypted.
        prefix: A digest of what comes before it, other reasoning left out.
        is_new: Whether it is in the answer.
        id: Its own id, where the API gives reasoning one.
    """

    path: str
    seal: str
    prefix: str
    is_new: bool = False
    id: str = ""


@dataclass(frozen=True, slots=True)
class ReasoningBinding:
    """How an API binds reasoning: the `reasoning_binding` of its law gives one.

    Attributes:
        find: The reasoning of a request, and of the output that answered it, in order.
        kind_of: What models share their reasoning, by a model's name; `None` for an unknown name.
        binds: Whether a model binds its reasoning to what comes before it.
        refuses: Who is refused where that has changed; `None` where nobody is, and reasoning that
            doesn't fit is taken away or shown.
        refusal: What is said of reasoning behind another beginning; `{}` stands for its place.
        unbound: The keys under which nothing is bound.
    """

    find: Callable[[Mapping[str, Any], Any], list[BoundBlock]]
    kind_of: Callable[[str | None], object | None]
    binds: Callable[[str | None], bool]
    refuses: Callable[[str | None], Enforcement | None]
    refusal: str = "{}: the reasoning was signed over another beginning."
    unbound: frozenset[str] = frozenset()


def write_bound(value: Any) -> bytes:
    """A JSON value as it goes into a digest; the order of keys isn't part of what is said."""
    return json.dumps(value, sort_keys=True, default=str).encode("utf-8", "surrogatepass") + b"\n"
