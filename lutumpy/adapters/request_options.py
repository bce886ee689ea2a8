"""The keywords of an adapter's `request`, which are options of this library or parameters of the
provider.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from lutumpy.core.model import OutputSpec, check_options
from lutumpy.core.unset import unset_names

__all__ = ["request_options"]

_OPTIONS = frozenset({"model", "temperature", "max_output_tokens", "strict"})


def request_options(
    options: Mapping[str, Any],
    with_output: Callable[[OutputSpec, Mapping[str, Any]], dict[str, Any]],
    own: Collection[str] = (),
) -> dict[str, Any]:
    """The keywords of `request` as the functions that make the fields of a request take them.

    Args:
        options: The keywords. What isn't an option of this library is a provider parameter.
        with_output: Adds the schema of an answer to provider parameters, as the API spells it.
        own: Further options, which only the adapter's API has.

    Raises:
        TypeError: An option has the wrong type.
        ValueError: A limit is below 1.
    """
    check_options(
        options.get("temperature"),
        options.get("max_output_tokens"),
        options.get("extra"),
        options.get("strict"),
    )
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in options.items():
        if name in _OPTIONS or name in own:
            known[name] = value
        elif name not in ("extra", "output"):
            extra[name] = value
    extra |= options.get("extra") or {}
    output = options.get("output")
    if output is not None:
        extra = {**with_output(output, extra), **unset_names(extra)}
    return {**known, "extra": extra}
