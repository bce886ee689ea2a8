"""Reading the arguments of one call: total, whatever the model wrote (rules C2 to C5, D5, D6).

Good arguments cost one `validate_json`. Everything else here runs only after that failed: it finds out why, makes the
repairs that the rules allow, validates once more, and otherwise writes down what the model needs to correct.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeGuard

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, from_json, to_json

from lutumpy.core.json_values import may_hold_constants
from lutumpy.core.values import dataclass
from lutumpy.errors import ToolError
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.failures import tool_error_message

__all__ = ["Decoded", "Refused", "Repair", "decode_arguments", "second_look"]

Path = tuple[str | int, ...]

_MOST_FIELDS = 10
_VALUE_LENGTH = 100
_MESSAGE_LENGTH = 500
_OWN_CHECK = "was refused by this tool's own check"
# Their messages quote an exception of the user's code.
_QUOTING = frozenset(
    {"value_error", "assertion_error", "iteration_error", "get_attribute_error", "mapping_type"}
)
_KINDS: dict[type, str] = {list: "an array", str: "a string", bool: "true or false"}


class Repair(NamedTuple):
    """One value that was read in another way than the model wrote it.

    Attributes:
        path: Where, such as `items[0].tags`.
        rule: `json_string`: a JSON text in a string was decoded, since the field takes no string.
    """

    path: str
    rule: str


class Decoded(NamedTuple):
    """Arguments that fit, and what had to be repaired for that."""

    input: BaseModel
    repairs: tuple[Repair, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """Arguments that don't fit; `detail` is for the model."""

    reason: Literal["malformed_arguments", "invalid_arguments"]
    detail: str


def decode_arguments(tool: CompiledTool, text: str) -> Decoded | Refused:
    """Read the argument text of a call of `tool`. Never raises for what stands in it."""
    if may_hold_constants(text) and (refused := _not_json(text)) is not None:
        return refused
    try:
        return Decoded(tool.decode(text), ())
    except Exception as error:
        return second_look(tool, text, error)


def second_look(tool: CompiledTool, text: str, error: Exception) -> Decoded | Refused:
    """What becomes of arguments that `tool.decode` has refused with `error`. Never raises for what stands in them."""
    if text[:1] != "{":
        text = text.strip()
        if text in ("", "null"):
            text = "{}"
        return decode_arguments(tool, text) if text[0] == "{" else _no_object(text)
    if isinstance(error, ValidationError):
        return _repaired(tool, text, error)
    return _check_failed(tool, error)


def partial_arguments(text: str) -> Any:
    """The JSON value of arguments that are still arriving, as far as they go; `{}` when nothing of them can be read."""
    try:
        return from_json(text, allow_partial="trailing-strings")
    except (ValueError, TypeError):  # a lone surrogate makes it no string for the parser
        return {}


def _not_json(text: str) -> Refused | None:
    """What is wrong with a text that is no JSON, though pydantic's parser might take it (rule C2b)."""
    try:
        from_json(text.encode(), allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        return _malformed(error)
    return None


def _no_object(text: str) -> Refused:
    try:
        value: Any = from_json(text.encode(), allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        return _malformed(error)
    kind = next((name for kind, name in _KINDS.items() if isinstance(value, kind)), "a number")
    return Refused("malformed_arguments", f"The arguments are {kind}. Send one JSON object.")


def _malformed(error: Exception) -> Refused:
    # The parser's own words: what it expected, line and column. Other errors come from text that is no Unicode.
    where = "they hold half of a surrogate pair" if isinstance(error, UnicodeError) else str(error)
    reason = _cut(where or "they are nested too deeply", 200)
    return Refused(
        "malformed_arguments", f"The arguments are not valid JSON: {reason}. Send one JSON object."
    )


def _check_failed(tool: CompiledTool, error: Exception) -> Refused:
    """A validator of the user's raised something that is no validation error."""
    if isinstance(error, ToolError):  # raised to be read by the model
        return Refused(
            "invalid_arguments",
            _clean(_cut(tool_error_message(error), _MESSAGE_LENGTH)) or f"The input {_OWN_CHECK}.",
        )
    import logging  # rare, and slow to import

    logging.getLogger("lutumpy.decode").warning(
        "a validator of the tool %s raised", tool.definition.name, exc_info=error
    )
    return Refused(
        "invalid_arguments",
        "The arguments could not be checked: this tool's own check failed on them.",
    )


def _repaired(tool: CompiledTool, text: str, error: ValidationError) -> Decoded | Refused:
    """Find out what is wrong with a text that begins like an object, and repair what may be repaired."""
    try:
        data: Any = from_json(text.encode(), allow_inf_nan=False)
    except (ValueError, RecursionError) as broken:
        return _malformed(broken)
    validate = tool.decode
    node: Mapping[str, Any] = tool.definition.input_schema
    if tool.wrapped:
        try:
            return Decoded(tool.validate_bare(text), ())
        except ValidationError as bare:
            # Both forms failed. The model meant the wrapped one if that is what it looks like.
            if data.keys() != {"input"}:
                error, node = bare, node["properties"]["input"]
                validate = tool.validate_bare
        except Exception as failed:
            return _check_failed(tool, failed)
    failures = [_Failure.of(data, details) for details in error.errors(include_url=False)]
    edits = _edits(data, failures, _Places(tool.definition.input_schema, node))
    if edits:
        try:
            return Decoded(validate(to_json(edits.applied(data)).decode()), edits.repairs)
        except ValidationError:
            pass  # the model is told about what it wrote
        except Exception as failed:
            return _check_failed(tool, failed)
    return Refused("invalid_arguments", _report(failures))


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
    def of(cls, data: Any, details: ErrorDetails) -> _Failure:
        loc = details["loc"]
        inner = loc[:-1] if details["type"] == "missing" else loc
        steps = _steps(data, inner, details["input"])
        path = tuple(part for part, step in zip(inner, steps, strict=True) if step)
        return cls(
            details, path + loc[len(inner) :], tuple(i for i, step in enumerate(steps) if not step)
        )


def _steps(data: Any, loc: Sequence[str | int], target: Any) -> tuple[bool, ...]:
    """Which parts of `loc` lead deeper into `data`, so that it ends at `target`; the others are tags.

    A tag may be spelled like a key, so both ways are tried, each place once.
    """
    dead_ends: set[tuple[int, int]] = set()

    def search(value: Any, index: int) -> tuple[bool, ...] | None:
        if index == len(loc):
            return () if type(value) is type(target) and value == target else None
        if (id(value), index) in dead_ends:
            return None
        if _has(value, part := loc[index]) and (rest := search(value[part], index + 1)) is not None:
            return (True, *rest)
        if (rest := search(value, index + 1)) is not None:
            return (False, *rest)
        dead_ends.add((id(value), index))
        return None

    if (found := search(data, 0)) is not None:
        return found
    steps: list[bool] = []
    for part in loc:
        steps.append(_has(data, part))
        data = data[part] if steps[-1] else data
    return tuple(steps)


def _has(value: Any, part: str | int) -> bool:
    if _is_object(value):
        return part in value
    return _is_list(value) and isinstance(part, int) and -1 < part < len(value)


class _Places:
    """Looks up what a JSON Schema says at a path."""

    def __init__(self, root: Mapping[str, Any], node: Mapping[str, Any]) -> None:
        self.root = root
        self.node = node

    def alternatives(
        self, node: Any, seen: frozenset[str] = frozenset()
    ) -> Iterator[Mapping[str, Any]]:
        """`node` without references and unions: each schema that a value may have to fit."""
        if not _is_object(node):
            return
        if isinstance(ref := node.get("$ref"), str):
            if ref not in seen:
                target: Any = self.root
                for part in ref.removeprefix("#").split("/")[1:]:
                    target = target.get(part, {})
                yield from self.alternatives(target, seen | {ref})
            return
        branches: list[Any] = [
            branch for key in ("anyOf", "oneOf", "allOf") for branch in node.get(key, ())
        ]
        if not branches:
            yield node
        for branch in branches:
            yield from self.alternatives(branch, seen)

    def at(self, path: Path) -> list[Mapping[str, Any]]:
        """Every schema that may hold at `path`; empty where nothing is known."""
        nodes = list(self.alternatives(self.node))
        for part in path:
            nodes = [
                found
                for node in nodes
                for child in _children(node, part)
                for found in self.alternatives(child)
            ]
        return nodes

    def takes(self, path: Path, kind: Literal["string", "null"]) -> bool:
        """Whether a value of this kind may fit at `path`; yes where nothing is known."""
        nodes = self.at(path)
        return not nodes or any(_takes(node, kind) for node in nodes)

    def optional(self, path: Path) -> bool:
        """Whether the property at `path` may be left out."""
        parents = [node for node in self.at(path[:-1]) if path[-1] in node.get("properties", ())]
        return any(path[-1] not in node.get("required", ()) for node in parents)


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _children(node: Mapping[str, Any], part: str | int) -> Iterator[Any]:
    if isinstance(part, str):
        properties = node.get("properties", {})
        yield properties[part] if part in properties else node.get("additionalProperties")
    else:
        first = node.get("prefixItems", ())
        yield first[part] if part < len(first) else node.get("items")


def _takes(node: Mapping[str, Any], kind: Literal["string", "null"]) -> bool:
    wanted = str if kind == "string" else type(None)
    if "const" in node:
        return isinstance(node["const"], wanted)
    if "enum" in node:
        return any(isinstance(value, wanted) for value in node["enum"])
    types = node.get("type", kind)
    return types == kind or (isinstance(types, list) and kind in types)


class _Edits:
    """Changes to what the model wrote, all of them made together or none."""

    def __init__(self) -> None:
        self.left_out: list[Path] = []
        self.decoded: dict[Path, Any] = {}

    def __bool__(self) -> bool:
        return bool(self.left_out or self.decoded)

    @property
    def repairs(self) -> tuple[Repair, ...]:
        return tuple(Repair(_spelled(path), "json_string") for path in self.decoded)

    def applied(self, data: Any) -> Any:
        """`data` with the edits made, in place."""
        for path, value in self.decoded.items():
            _parent(data, path)[path[-1]] = value
        for path in self.left_out:
            del _parent(data, path)[path[-1]]
        return data


def _edits(data: Any, failures: Sequence[_Failure], places: _Places) -> _Edits:
    edits = _Edits()
    for path in dict.fromkeys(failure.path for failure in failures if failure.path):
        parent = _parent(data, path)
        if not _has(parent, path[-1]):
            continue
        value = parent[path[-1]]
        if value is None and isinstance(parent, dict):
            if places.optional(path) and not places.takes(path, "null"):
                edits.left_out.append(path)
        elif isinstance(value, str) and not places.takes(path, "string"):
            try:
                edits.decoded[path] = from_json(value, allow_inf_nan=False)
            except (ValueError, RecursionError):
                continue
    return edits


def _parent(data: Any, path: Path) -> Any:
    for part in path[:-1]:
        data = data[part] if _has(data, part) else None
    return data


def _report(failures: Sequence[_Failure]) -> str:
    """What is wrong, a line for each field, in words for the model."""
    lines: dict[Path, list[_Failure]] = {}
    for failure in _meant(failures):
        lines.setdefault(failure.path, []).append(failure)
    out = [_line(path, found) for path, found in list(lines.items())[:_MOST_FIELDS]]
    if len(lines) > _MOST_FIELDS:
        out.append(f"… and {len(lines) - _MOST_FIELDS} more")
    return _clean("\n".join(out))


def _meant(failures: Sequence[_Failure]) -> Sequence[_Failure]:
    """`failures` without those of union branches that the model did not mean.

    A value that fits no branch fails in each of them. One whose `Literal` field differs is another kind of thing, and
    of no interest as long as there is a branch whose `Literal` fields agree.
    """
    branches: dict[Path, dict[str | int, bool]] = {}
    for failure in failures:
        loc = failure.details["loc"]
        for tag in failure.tags:
            other = failure.details["type"] == "literal_error" and len(loc) == tag + 2
            of_union = branches.setdefault(loc[:tag], {})
            of_union[loc[tag]] = of_union.get(loc[tag], False) or other

    def is_meant(failure: _Failure) -> bool:
        loc = failure.details["loc"]
        return not any(
            branches[loc[:tag]][loc[tag]] and not all(branches[loc[:tag]].values())
            for tag in failure.tags
        )

    return [failure for failure in failures if is_meant(failure)] or failures


def _line(path: Path, failures: Sequence[_Failure]) -> str:
    messages = " or: ".join(dict.fromkeys(_message(failure.details) for failure in failures))
    first = failures[0].details
    shown = (
        ""
        if first["type"] in ("missing", "extra_forbidden") or not path
        else f" (got {_value(first['input'])})"
    )
    return f"{_cut(_spelled(path), 200) or 'arguments'}: {messages}{shown}"


def _message(details: ErrorDetails) -> str:
    if details["type"] in _QUOTING:
        cause = details.get("ctx", {}).get("error")
        told = tool_error_message(cause) if isinstance(cause, ToolError) else ""
        return _one_line(told) or _OWN_CHECK
    return _one_line(details["msg"])


def _one_line(text: str) -> str:
    return _cut(" ".join(text.split()), _MESSAGE_LENGTH)


def _value(value: Any) -> str:
    try:
        return _cut(to_json(value).decode(), _VALUE_LENGTH)
    except Exception:
        return type(value).__name__


def _spelled(path: Path) -> str:
    """`("items", 0, "a b")` as `items[0]["a b"]`."""
    out = ""
    for part in path:
        if isinstance(part, int):
            out += f"[{part}]"
        elif part.isidentifier():
            out += f".{part}" if out else part
        else:
            out += f"[{to_json(part).decode()}]"
    return out


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _clean(text: str) -> str:
    """`text` without lone surrogates, which no request can carry."""
    return text.encode("utf-8", "replace").decode()
