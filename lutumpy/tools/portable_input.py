"""The input of a call as JSON and back, for plans and tickets (rule P12)."""

# An input that was loaded has to be the one that was dumped, so the way back is tried before
# anything is given: what doesn't come back equal (a secret, a serializer that leaves something out,
# a validator that changes what it reads each time) is refused when it is written, not when somebody
# wants to run it.
#
# Fields are written by their aliases, as the model writes them; by their names where a model takes
# another alias than it gives. Both are read.

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel, ValidationError

from lutumpy.plain import json_values
from lutumpy.tools.argument_report import (
    Path,
    describe_error,
    join_messages,
    spell_place,
    write_lines,
)
from lutumpy.tools.compiled import CompiledTool

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["NotPortable", "dump_input", "dump_value", "load_input"]


_LARGER_THAN_FLOATS = re.compile("[0-9]{308}")


class NotPortable(ValueError):
    """An input doesn't survive JSON, or JSON isn't an input of its tool; the text says why."""


class HasInput(Protocol):
    """A call."""

    input: Any

    @property
    def tool(self) -> CompiledTool: ...


def dump_input(call: HasInput) -> JsonValue:
    """The input of a call as JSON, in full: with the defaults that it was given.

    Raises:
        NotPortable: it wouldn't come back equal.
    """
    return dump_value(call.tool, call.input)


def dump_value(tool: CompiledTool, value: Any) -> JsonValue:
    """An input of a tool as JSON; see `dump_input`."""
    if isinstance(value, str):
        return str.__str__(value)
    if tool.is_dynamic:
        values: JsonValue = json_values.decode(json_values.encode(dict(value.values)))
        _load_dynamic(tool, values)
        return values
    error: NotPortable | None = None
    for by_alias in (True, False):
        try:
            return _try_both_ways(tool, value, by_alias=by_alias)
        except NotPortable as raised:
            error = error or raised
    assert error is not None
    raise error


def _try_both_ways(tool: CompiledTool, value: BaseModel, *, by_alias: bool) -> JsonValue:
    try:
        text = value.model_dump_json(by_alias=by_alias, warnings=False)
        data: JsonValue = json.loads(text)
    except Exception as error:
        raise NotPortable(f"it can't be written ({type(error).__name__})") from error
    back = _read(tool, text)
    if back != value or type(back) is not type(value):
        raise NotPortable(_name_difference(value, back))
    # Compared by `==`, True is 1 and a value may be equal to anything.
    again = back.model_dump_json(by_alias=by_alias, warnings=False)
    if again != text and _write_sorted(back, json.loads(again)) != _write_sorted(value, data):
        raise NotPortable("it is written otherwise the second time")
    return data


def _write_sorted(value: BaseModel, data: JsonValue) -> str:
    """An input as JSON that doesn't depend on the order in which its sets hold their elements."""
    from lutumpy.tools.set_order import sort_sets  # few inputs hold sets

    return json.dumps(sort_sets(value, data))


def _name_difference(value: BaseModel, back: BaseModel) -> str:
    names: list[str] = []
    for name, one in value.__dict__.items():
        try:
            if back.__dict__.get(name) != one:
                names.append(name)
        except Exception:  # somebody else's `__eq__`
            names.append(name)
    listed = ", ".join(names) or "a field"
    return f"{listed} doesn't come back as it was"


def load_input(tool: CompiledTool, data: Any) -> Any:
    """The input of a tool from JSON, as it was dumped; nothing is decoded or defaulted anew.

    Raises:
        NotPortable: it isn't an input of the tool.
    """
    if tool.is_text:
        if not isinstance(data, str):
            raise NotPortable("it is not a text")
        problem = tool.text_problem(data)
        if problem is not None:
            raise NotPortable(problem)
        return data
    if tool.is_dynamic:
        return _load_dynamic(tool, data)
    try:
        text = json.dumps(data, allow_nan=False)
    except (RecursionError, TypeError, ValueError) as error:
        raise NotPortable("it is not JSON") from error
    read = _read(tool, text)
    if _LARGER_THAN_FLOATS.search(text) is not None:
        # A field of floats reads such a number as an infinity, which nobody wrote.
        dump_value(tool, read)
    return read


def _load_dynamic(tool: Any, data: Any) -> Any:
    from lutumpy.tools.dynamic_values import input_of_values

    if not isinstance(data, dict):
        raise NotPortable("it is not a JSON object")
    # What a check of the tool's own has made of the arguments needn't fit the schema.
    misfits = () if tool.has_check else tool.schema.failures(data)
    if misfits:
        lines = write_lines(misfits, lambda misfit: f"{_spell_place(misfit[0])}: {misfit[1]}")
        raise NotPortable(f"it doesn't fit the schema: {lines}")
    return input_of_values(dict(data))


def _explain_misfits(error: ValidationError) -> str:
    """What doesn't fit, a line for each field. The values aren't shown: some are secrets."""
    by_place: dict[str, list[str]] = {}
    for details in error.errors(include_url=False, include_input=False):
        messages = by_place.setdefault(_spell_place(details["loc"]), [])
        messages.append(describe_error(details))
    return write_lines([*by_place], lambda place: f"{place}: {join_messages(by_place[place])}")


def _spell_place(path: Path) -> str:
    return spell_place(path) if path else "the whole"


def _read(tool: CompiledTool, text: str) -> BaseModel:
    try:
        read: BaseModel = tool.input_type.model_validate_json(text, by_alias=True, by_name=True)
    except ValidationError as error:
        raise NotPortable(_explain_misfits(error)) from error
    except Exception as error:  # a validator of the user's
        raise NotPortable(f"it can't be read ({type(error).__name__})") from error
    return read
