"""Sets as JSON, in an order that is the same each time."""

# In which order Python goes through a set follows from its history, and for texts also from a
# number that every process draws anew. Equal sets are different lists then: one tool would have
# another schema, and one call another key, in each worker. So where such lists are compared or
# have to be the same bytes, they are put into the order of their elements' JSON texts.

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

__all__ = ["sort_elements", "sort_sets"]


def sort_elements(values: Iterable[Any], default: Callable[[Any], Any] | None = None) -> list[Any]:
    """The elements of a set in the order of their JSON texts.

    Args:
        values: The elements.
        default: Makes JSON of what isn't, as for `json.dumps`.
    """
    return sorted(values, key=lambda each: json.dumps(each, default=default, sort_keys=True))


def sort_sets(value: Any, encoded: Any) -> Any:
    """`encoded`, with the lists in it sorted that were made of sets.

    What a serializer of the user's has made of a value stays as it is.

    Args:
        value: A value.
        encoded: What it is as JSON, with the sets in the order in which `value` holds them.
    """
    if isinstance(value, BaseModel) and value.__pydantic_root_model__:
        return sort_sets(value.__dict__.get("root"), encoded)
    if isinstance(encoded, list):
        if isinstance(value, (list, tuple, set, frozenset)) and len(value) == len(encoded):
            pairs = zip(value, encoded, strict=True)
            inner = [sort_sets(one, other) for one, other in pairs]
            return sort_elements(inner) if isinstance(value, (set, frozenset)) else inner
    elif isinstance(encoded, dict):
        held = dict(_held_values(value, encoded))
        return {key: sort_sets(held.get(key), other) for key, other in encoded.items()}
    return encoded


def _held_values(value: Any, encoded: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What a mapping or an object holds, by its key in the JSON."""
    if isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            for key in (field.serialization_alias, field.alias, name):
                if key in encoded:
                    yield key, value.__dict__.get(name)
                    break
        yield from (value.__pydantic_extra__ or {}).items()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from (
            (field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)
        )
    elif isinstance(value, Mapping) and len(value) == len(encoded):
        yield from zip(encoded, value.values(), strict=True)
