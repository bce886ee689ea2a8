"""NaN and infinities in a tool's output: JSON has neither, and only the output type can say how they are written.

Pydantic writes `null` for them unless it is told otherwise, so a model would read "nothing" where a number was. What counts
as being told (rule C2b): `ser_json_inf_nan` in a model's config, or a serializer that makes something else of the number.
Finding out is for the rare output that holds such a number: one question to pydantic's encoder decides whether it does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from lutumpy.core.json_values import as_written

__all__ = ["NoJsonNumber", "refuse_silent_numbers"]

_SETTING = "ser_json_inf_nan"


class NoJsonNumber(ValueError):
    """An output holds a number that JSON doesn't have; the message says where."""


def refuse_silent_numbers(adapter: TypeAdapter[Any], value: Any, data: bytes) -> None:
    """Raise when `data`, the JSON of `value`, says something else in place of a number that JSON doesn't have.

    Args:
        adapter: The output type's.
        value: The output.
        data: What `adapter` made of it.

    Raises:
        NoJsonNumber: it holds NaN or an infinity, and nothing in the output type says how that is written.
    """
    plain = adapter.dump_python(value, by_alias=True, warnings=False)
    try:
        spelled = to_json(plain, inf_nan_mode="constants", serialize_unknown=True)
    except ValueError:
        pass  # a lone surrogate: then the values themselves are looked at
    else:
        if b"NaN" not in spelled and b"Infinity" not in spelled:
            return
    settings = set(_settings(adapter.core_schema))
    if "null" in settings:  # the type asks for what pydantic does by itself
        return
    dumped = adapter.dump_python(value, mode="json", by_alias=True, warnings=False)
    # A number of no declared type is `null` in the dump already; so it is where a serializer for JSON alone says so.
    sources = [dumped] if "json" in settings else [dumped, plain]
    for source in sources:
        for path, written, number in _changed(from_json(data), source):
            if written is None or "strings" not in settings:
                where = f" at {path}" if path else ""
                raise NoJsonNumber(
                    f"{as_written(number)}{where} is a number that JSON doesn't have; say in the output type how it is "
                    f"written, by a serializer or {_SETTING} in its config"
                )


def _changed(written: Any, source: Any, path: str = "") -> Iterator[tuple[str, Any, float]]:
    """Where `source` has a number that JSON doesn't, and `written`, its JSON, something else: path, what, and the number."""
    if isinstance(source, float):
        if not math.isfinite(source) and not isinstance(written, float):
            yield path, written, source
    elif isinstance(source, Mapping):
        if isinstance(written, dict) and len(written) == len(source):
            for (key, inner), value in zip(written.items(), source.values(), strict=True):
                yield from _changed(inner, value, f"{path}.{key}" if path else key)
    elif (
        isinstance(source, (list, tuple, set, frozenset))
        and isinstance(written, list)
        and len(written) == len(source)
    ):
        for number, (inner, value) in enumerate(zip(written, source, strict=True)):
            yield from _changed(inner, value, f"{path}[{number}]")


def _settings(schema: Any) -> Iterator[str]:
    """What a type's schema says of such numbers: values of the setting, and `json` for a serializer that is for JSON alone."""
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
