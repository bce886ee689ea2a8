"""NaN and infinities in a tool's output: only the output type can say how they are written."""

# JSON has neither. Pydantic writes `null` for them unless it is told otherwise, so a model would
# read "nothing" where a number was. What counts as being told (rule C2b):
#
#   the output type has                               then such a number may be written as
#   ------------------------------------------------  ---------------------------------------------
#   `ser_json_inf_nan="null"` in a config             null
#   `ser_json_inf_nan="strings"`                      a string
#   a serializer that makes something else of it      whatever that made, but null
#   none of these                                     refused: `NoJsonNumber`
#
# Finding out is for the rare output that holds such a number. Whether it does, one question to
# pydantic's encoder decides, which spells them out (`NaN`) when it is asked to.

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from lutumpy.plain.json_values import as_written

__all__ = ["NoJsonNumber", "refuse_silent_numbers"]

_SETTING = "ser_json_inf_nan"


class NoJsonNumber(ValueError):
    """An output holds a number that JSON doesn't have; the message says where."""


def refuse_silent_numbers(adapter: TypeAdapter[Any], value: Any, data: bytes) -> None:
    """Refuse JSON in which something else silently took the place of NaN or an infinity.

    Args:
        adapter: The output type's.
        value: The output.
        data: The JSON that `adapter` made of it.

    Raises:
        NoJsonNumber: The output holds such a number, and nothing in its type says how that is
            written.
    """
    plain = adapter.dump_python(value, by_alias=True, warnings=False)
    try:
        spelled = to_json(plain, inf_nan_mode="constants", serialize_unknown=True)
    except ValueError:
        pass  # a lone surrogate: then the values themselves are looked at
    else:
        if b"NaN" not in spelled and b"Infinity" not in spelled:
            return
    settings = set(_find_settings(adapter.core_schema))
    if "null" in settings:  # the type asks for what pydantic does by itself
        return
    dumped = adapter.dump_python(value, mode="json", by_alias=True, warnings=False)
    # A number of no declared type is `null` in the dump already, and then only the plain values
    # have it. They aren't a witness where a serializer is for JSON alone: it may well write `null`
    # itself.
    sources = [dumped] if "json" in settings else [dumped, plain]
    for source in sources:
        for path, written, number in _find_changed_numbers(from_json(data), source):
            if written is None or "strings" not in settings:
                where = f" at {path}" if path else ""
                raise NoJsonNumber(
                    f"{as_written(number)}{where} is a number that JSON doesn't have; say in the "
                    f"output type how it is written, by a serializer or {_SETTING} in its config"
                )


def _find_changed_numbers(
    written: Any, source: Any, path: str = ""
) -> Iterator[tuple[str, Any, float]]:
    """Where `source` has a number that JSON doesn't have, and its JSON something else.

    Args:
        written: The JSON value.
        source: What it was made of.
        path: Where both are.

    Yields:
        The place, what was written there, and the number.
    """
    if isinstance(source, float):
        if not math.isfinite(source) and not isinstance(written, float):
            yield path, written, source
    elif isinstance(source, Mapping):
        if isinstance(written, dict) and len(written) == len(source):
            for (key, inner), value in zip(written.items(), source.values(), strict=True):
                yield from _find_changed_numbers(inner, value, f"{path}.{key}" if path else key)
    elif isinstance(source, (list, tuple, set, frozenset)):
        pairs: Any = ()
        if isinstance(written, list) and len(written) == len(source):
            pairs = zip(written, source, strict=True)
        for index, (inner, value) in enumerate(pairs):
            yield from _find_changed_numbers(inner, value, f"{path}[{index}]")


def _find_settings(schema: Any) -> Iterator[str]:
    """What a type's schema says of such numbers.

    Yields:
        Each value of the setting, and `json` for a serializer that is for JSON alone.
    """
    stack = [schema]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Mapping):
            if isinstance(found := node.get(_SETTING), str):
                yield found
            if node.get("when_used") in ("json", "json-unless-none"):
                yield "json"
            stack += node.values()
        elif isinstance(node, (list, tuple)):
            stack += node
