"""Reading the arguments of one call: total, whatever the model wrote (rules C2 to C5, D5, D6)."""

# What is hard here
# -----------------
# Good arguments cost one `validate_json`. Everything else runs only after that has failed, and ends
# in one of two values: `Decoded` (perhaps with repairs) or `Refused` (with a text for the model).
#
#   the text                                   what becomes of it
#   -----------------------------------------  ---------------------------------------------------
#   empty, or `null`                           read as `{}`
#   not JSON, or JSON that is not an object    Refused, "malformed_arguments"
#   fits the input                             Decoded
#   `{"input": ...}` for a wrapped tool        Decoded; so is what would be inside, alone. What fits
#                                              neither isn't read as fields of any name: `input` is
#                                              one only where a branch has it
#   fits once the edits below are made         Decoded, with what was repaired
#   anything else                              Refused, "invalid_arguments": a line for each field
#   a validator of the user's raised           Refused, "invalid_arguments"; logged
#   free text, for a tool that takes it        Decoded as it is; Refused if it breaks the pattern
#
# There are two edits, and both follow from the schema alone. A JSON text in a string is decoded
# where the field takes no string (rule C5); the call reports that in `repairs`. A `null` is left
# out where the field may be left out and takes no null (rule D5): the strict form of a schema asks
# models for every field, so `null` is how they leave one out, and nothing is reported. All nulls
# are left out first, then all texts are decoded, and each time the result is validated once more.
# If it still doesn't fit, the model is told about the texts that it wrote, not about what they
# hold. It isn't told about the nulls: they are not a mistake, and what is wrong without them, such
# as "give a or b", is what it needs to know.
#
# The difficulty is to know *where* an error lies. Pydantic's `loc` mixes keys of the data with tags
# of union branches ("items", 0, "Cat", "name"), and a tag may be spelled like a key. `_match_steps`
# finds out which parts are keys by walking them through the data until they end at the value that
# the error names. The tags matter too: a value that fits no branch of a union fails in each of
# them, and the model should hear about the branch that it meant (`_drop_other_branches`).

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json, to_json

from lutumpy.core.items import ToolMetadata
from lutumpy.errors import ToolError
from lutumpy.plain.json_values import may_hold_constants
from lutumpy.plain.preview import shorten
from lutumpy.plain.values import dataclass
from lutumpy.tools.argument_edits import (
    ArgumentRepair,
    SchemaLookup,
    find_edits,
    has_part,
    names_property,
)
from lutumpy.tools.argument_report import (
    MESSAGE_LENGTH,
    OWN_CHECK,
    Path,
    describe_error,
    join_messages,
    replace_surrogates,
    show_value,
    spell_place,
    write_lines,
)
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.failures import tool_error_message

__all__ = [
    "ArgumentRepair",
    "Decoded",
    "Refused",
    "decode_arguments",
    "decode_call_again",
    "decode_text",
    "explain_raised_check",
    "repair_or_explain",
]

# In characters.
_REASON_LENGTH = 200
_KINDS: dict[type, str] = {list: "an array", str: "a string", bool: "true or false"}


class Decoded(NamedTuple):
    """Arguments that fit, and what had to be repaired for that."""

    input: Any
    repairs: tuple[ArgumentRepair, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """Arguments that don't fit; `detail` is for the model."""

    reason: Literal["malformed_arguments", "invalid_arguments"]
    detail: str


def decode_arguments(tool: CompiledTool, text: str) -> Decoded | Refused:
    """Read the argument text of a call of `tool`. Never raises because of what the text holds."""
    if may_hold_constants(text) and (refused := _find_syntax_error(text)) is not None:
        return refused
    try:
        return Decoded(tool.decode(text), ())
    except Exception as error:
        return repair_or_explain(tool, text, error)


def decode_text(tool: CompiledTool, text: str) -> Decoded | Refused:
    """Read a call that is written as free text. Nothing is ever repaired in it (rule C5)."""
    problem = tool.text_problem(text)
    return Decoded(text, ()) if problem is None else Refused("invalid_arguments", problem)


def decode_call_again(tool: CompiledTool, metadata: ToolMetadata) -> Decoded | Refused:
    """What a call of `tool` says, in the form in which it was written: JSON, or free text."""
    decode = decode_text if metadata.is_text else decode_arguments
    return decode(tool, metadata.arguments)


def repair_or_explain(tool: CompiledTool, text: str, error: Exception) -> Decoded | Refused:
    """Arguments that `tool.decode` has refused with `error`: repaired, or explained to the model.

    Never raises because of what the text holds.
    """
    if text[:1] != "{":
        text = text.strip()
        if text in ("", "null"):
            text = "{}"
        return decode_arguments(tool, text) if text[0] == "{" else _explain_non_object(text)
    if isinstance(error, ValidationError):
        return _repair_object(tool, text, error)
    # A tool whose schema is known at run time only has no pydantic errors.
    decoded: Decoded | Refused | None = tool.repair_by_schema(text, error)
    return explain_raised_check(tool, error) if decoded is None else decoded


def partial_arguments(text: str) -> Any:
    """The JSON value of arguments that are still arriving, as far as it can be read; else `{}`."""
    try:
        return from_json(text, allow_partial="trailing-strings")
    except (ValueError, TypeError):  # with a lone surrogate, the parser doesn't take it as a string
        return {}


def _find_syntax_error(text: str) -> Refused | None:
    """Why the text is not JSON, though pydantic's parser might take it (rule C2b)."""
    try:
        from_json(text.encode(), allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        return _explain_syntax(error)
    return None


def _explain_non_object(text: str) -> Refused:
    try:
        value: Any = from_json(text.encode(), allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        return _explain_syntax(error)
    kind = next((name for kind, name in _KINDS.items() if isinstance(value, kind)), "a number")
    return Refused("malformed_arguments", f"The arguments are {kind}. Send one JSON object.")


def _explain_syntax(error: Exception) -> Refused:
    # The parser's own words name what it expected, with line and column. A UnicodeError comes from
    # text that can't be encoded, and a RecursionError may come without any words.
    where = "they hold half of a surrogate pair" if isinstance(error, UnicodeError) else str(error)
    reason = shorten(where or "they are nested too deeply", _REASON_LENGTH)
    return Refused(
        "malformed_arguments", f"The arguments are not valid JSON: {reason}. Send one JSON object."
    )


def explain_raised_check(tool: CompiledTool, error: Exception) -> Refused:
    """A validator of the user's raised something that is not a validation error."""
    if isinstance(error, ToolError):  # raised to be read by the model
        message = shorten(tool_error_message(error), MESSAGE_LENGTH)
        return Refused(
            "invalid_arguments", replace_surrogates(message) or f"The input {OWN_CHECK}."
        )
    import logging  # rare, and slow to import

    logging.getLogger("lutumpy.decode").warning(
        "a validator of the tool %s raised", tool.definition.name, exc_info=error
    )
    return Refused(
        "invalid_arguments",
        "The arguments could not be checked: this tool's own check failed on them.",
    )


def _repair_object(tool: CompiledTool, text: str, error: ValidationError) -> Decoded | Refused:
    """Repair a text that begins like an object where that is allowed, or explain what is wrong."""
    try:
        data: Any = from_json(text.encode(), allow_inf_nan=False)
    except (ValueError, RecursionError) as broken:
        return _explain_syntax(broken)
    validate = tool.decode
    root = tool.definition.input_schema
    node: Mapping[str, Any] = root
    if tool.wrapped and _may_be_bare(data, root):
        try:
            return Decoded(tool.validate_bare(text), ())
        except ValidationError as bare:
            # Both forms failed. The model meant the wrapped one if that is what it looks like.
            if data.keys() != {"input"}:
                error, node = bare, node["properties"]["input"]
                validate = tool.validate_bare
        except Exception as failed:
            return explain_raised_check(tool, failed)
    failures = _locate_failures(data, error)
    schema = SchemaLookup(root, node, data)
    edits = find_edits(data, [failure.path for failure in failures], schema)
    if edits.left_out:
        outcome = _validate_edited(tool, validate, edits.leave_out(data), ())
        if not isinstance(outcome, ValidationError):
            return outcome
        failures = _locate_failures(data, outcome)
    if edits.decoded:
        outcome = _validate_edited(tool, validate, edits.decode_texts(data), edits.repairs)
        if not isinstance(outcome, ValidationError):
            return outcome
        # The failures stay those of the texts that the model wrote.
    return Refused("invalid_arguments", _write_report(failures))


def _validate_edited(
    tool: CompiledTool,
    validate: Callable[[str], Any],
    data: Any,
    repairs: tuple[ArgumentRepair, ...],
) -> Decoded | Refused | ValidationError:
    """What the edited arguments are read as; the error if they don't fit even so."""
    try:
        return Decoded(validate(to_json(data).decode()), repairs)
    except ValidationError as error:
        return error
    except Exception as failed:
        return explain_raised_check(tool, failed)


def _may_be_bare(data: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """Whether arguments may be what should be under `input`, without it (rule D6).

    The key `input` alone is the wrapped form, unless a branch has a field of that name. A branch
    that takes fields of any name would take it, whatever the model wrote under it.
    """
    return data.keys() != {"input"} or names_property(root, root["properties"]["input"], "input")


# --- where an error lies ------------------------------------------------------------------------


def _locate_failures(data: Any, error: ValidationError) -> list[_Failure]:
    return [_Failure.locate(data, details) for details in error.errors(include_url=False)]


@dataclass(frozen=True, slots=True)
class _Failure:
    """One error of pydantic's, with its place in what the model wrote.

    Attributes:
        details: The error. Its `loc` mixes keys with tags of union branches.
        path: The keys alone.
        tags: Positions in `loc` that are tags.
    """

    details: ErrorDetails
    path: Path
    tags: tuple[int, ...]

    @classmethod
    def locate(cls, data: Any, details: ErrorDetails) -> _Failure:
        loc = details["loc"]
        # The last part of a missing field's `loc` is a key that the data doesn't have.
        inner = loc[:-1] if details["type"] == "missing" else loc
        steps = _match_steps(data, inner, details["input"])
        path = tuple(part for part, step in zip(inner, steps, strict=True) if step)
        tags = tuple(i for i, step in enumerate(steps) if not step)
        return cls(details, path + loc[len(inner) :], tags)


def _match_steps(data: Any, loc: Sequence[str | int], target: Any) -> tuple[bool, ...]:
    """Which parts of `loc` lead deeper into `data`, so that it ends at `target`.

    The others are tags. A tag may be spelled like a key, so both ways are tried, each place once.
    """
    dead_ends: set[tuple[int, int]] = set()

    def search(value: Any, index: int) -> tuple[bool, ...] | None:
        if index == len(loc):
            return () if type(value) is type(target) and value == target else None
        if (id(value), index) in dead_ends:
            return None
        part = loc[index]
        if has_part(value, part) and (rest := search(value[part], index + 1)) is not None:
            return (True, *rest)
        if (rest := search(value, index + 1)) is not None:
            return (False, *rest)
        dead_ends.add((id(value), index))
        return None

    if (found := search(data, 0)) is not None:
        return found
    # A validator that runs before the others may have put something else in the value's place. Then
    # nothing in the data equals the target, and whatever can be a key is taken as one.
    steps: list[bool] = []
    for part in loc:
        steps.append(has_part(data, part))
        data = data[part] if steps[-1] else data
    return tuple(steps)


# --- the text for the model ---------------------------------------------------------------------


def _write_report(failures: Sequence[_Failure]) -> str:
    """What is wrong, a line for each field, in words for the model."""
    by_path: dict[Path, list[_Failure]] = {}
    for failure in _drop_other_branches(failures):
        by_path.setdefault(failure.path, []).append(failure)
    return write_lines([*by_path], lambda path: _write_line(path, by_path[path]))


def _drop_other_branches(failures: Sequence[_Failure]) -> Sequence[_Failure]:
    """`failures` without those of union branches that the model did not mean.

    A value that fits no branch fails in each of them. One whose `Literal` field differs is another
    kind of thing, and of no interest as long as there is a branch whose `Literal` fields agree.
    """
    # For each union, by its place: whether a branch, by its tag, has another `Literal` value.
    differs: dict[Path, dict[str | int, bool]] = {}
    for failure in failures:
        loc = failure.details["loc"]
        for tag in failure.tags:
            other = failure.details["type"] == "literal_error" and len(loc) == tag + 2
            branches = differs.setdefault(loc[:tag], {})
            branches[loc[tag]] = branches.get(loc[tag], False) or other

    def is_meant(failure: _Failure) -> bool:
        loc = failure.details["loc"]
        return not any(
            differs[loc[:tag]][loc[tag]] and not all(differs[loc[:tag]].values())
            for tag in failure.tags
        )

    return [failure for failure in failures if is_meant(failure)] or failures


def _write_line(path: Path, failures: Sequence[_Failure]) -> str:
    messages = join_messages([describe_error(failure.details) for failure in failures])
    first = failures[0].details
    place = spell_place(path)
    if first["type"] in ("missing", "extra_forbidden") or not path:
        return f"{place}: {messages}"
    return f"{place}: {messages} (got {show_value(first['input'])})"
