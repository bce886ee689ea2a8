"""A value for `extra` that takes a provider parameter away."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

__all__ = ["UNSET", "Unset", "unset_names", "without_unset"]


class Unset(Enum):
    """The type of `UNSET`, which is its one value."""

    UNSET = "UNSET"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""As the value of a parameter in `extra`: the request goes without that parameter.

`None` is sent as `null`, which some hosts refuse. `extra={"stream_options": UNSET}` takes away what
the library, or a default of the adapter, would send. Inside of a parameter that is an object it
takes one of its fields away: `extra={"options": {"num_predict": UNSET}}`.
"""


def without_unset(value: Any) -> Any:
    """A parameter without the fields that are `UNSET`, at any depth of its objects."""
    if not isinstance(value, Mapping):
        return value
    return {name: without_unset(inner) for name, inner in value.items() if inner is not UNSET}


def unset_names(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that are taken away, as parameters."""
    return {name: value for name, value in extra.items() if value is UNSET}
