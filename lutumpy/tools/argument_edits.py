"""The edits that may make arguments fit: both follow from the schema alone (rules C5, D5)."""

# The module `arguments` says when they are made. A value that failed is edited in one of two ways:
#
#   it is a text, and its place takes no string     what the text holds as JSON takes its place
#   it is null, its place takes none and is         it is left out
#   optional
#
# What a place takes is looked up in the schema. Where the schema says nothing that is understood
# here, the place takes everything, and nothing is edited. Where several schemas say something of
# one place, their answers are joined:
#
#   own keywords, `$ref`, `allOf`       hold together: no, if one of them says no
#   the branches of `anyOf`, `oneOf`    one has to hold: yes, if one of them says yes
#
# Of the branches only those count that may be meant: whose `const` or `enum` fields don't differ in
# the data, and which say anything of the place.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple, TypeGuard

from pydantic_core import from_json

from lutumpy.rules.schema_walk import resolve
from lutumpy.tools.argument_report import Path, spell_path

__all__ = [
    "ArgumentRepair",
    "Edits",
    "SchemaLookup",
    "find_edits",
    "has_part",
    "names_property",
]


class ArgumentRepair(NamedTuple):
    """One value that was read in another way than the model wrote it.

    Attributes:
        path: Where, such as `items[0].tags`.
        rule: `json_string`: a JSON text in a string was decoded, since the field takes no string.
            `by_schema`: the model wrote the value without a type, as in XML, and the schema says
            that it isn't a text.
    """

    path: str
    rule: str


class SchemaLookup:
    """Looks up what a JSON Schema says of the places in a value.

    Args:
        root: Where references begin.
        node: The schema of the whole value.
        data: The value. It must not change while places are looked up.
    """

    def __init__(self, root: Mapping[str, Any], node: Mapping[str, Any], data: Any) -> None:
        self._root = root
        # By path: the value there, and what is said of it. Failures often lie side by side, and
        # going down from the root for each of them would take the square of the value's size.
        self._known: dict[Path, tuple[Any, Any]] = {(): (data, node)}

    def takes(self, path: Path, kind: Literal["string", "null"]) -> bool:
        """Whether a value of this kind may fit at `path`; yes where nothing is known."""
        return self._ask(path, partial(_takes_kind, kind=kind)) is not False

    def is_optional(self, path: Path) -> bool:
        """Whether the property at `path` may be left out."""
        return self._ask(path[:-1], partial(_may_lack, name=path[-1])) is True

    def _ask(self, path: Path, answer: Callable[[Mapping[str, Any]], bool | None]) -> bool | None:
        value, said = self._look_up(path)
        joined: bool | None = _fold(self._root, said, value, _Fold(answer, _all_say, _one_says))
        return joined

    def _look_up(self, path: Path) -> tuple[Any, Any]:
        """The value at `path`, and a schema of what is said of it."""
        length = len(path)
        while path[:length] not in self._known:
            length -= 1
        for end in range(length, len(path)):
            value, said = self._known[path[:end]]
            part = path[end]
            fold = _Fold(partial(_child_schema, part=part), _join_all, _join_any)
            inner = value[part] if has_part(value, part) else None
            self._known[path[: end + 1]] = inner, _fold(self._root, said, value, fold)
        return self._known[path]


def names_property(root: Mapping[str, Any], node: Any, name: str) -> bool:
    """Whether a schema says something of a property by its name, also in a branch of a union.

    Args:
        root: Where references begin.
        node: The schema.
        name: The property's name.
    """
    reached = _reach(root, node, ("allOf", "anyOf", "oneOf"))
    return any(name in each.get("properties", ()) for each in reached)


class _Fold(NamedTuple):
    """How what the parts of a schema say of one value becomes one thing.

    Attributes:
        read: What a schema's own keywords say; `None` for nothing.
        join_all: Joins what holds together.
        join_any: Joins what the branches of a union say.
    """

    read: Callable[[Mapping[str, Any]], Any]
    join_all: Callable[[list[Any]], Any]
    join_any: Callable[[list[Any]], Any]


def _fold(
    root: Mapping[str, Any],
    node: Any,
    value: Any,
    fold: _Fold,
    seen: frozenset[int] = frozenset(),
) -> Any:
    """What `node` and all that it leads to say of `value`.

    Args:
        root: Where references begin.
        node: The schema.
        value: The value.
        fold: How it is read and joined.
        seen: The unions that this is part of. One that leads back to itself says nothing new.
    """
    said: list[Any] = []
    for each in _hold_together(root, node):
        said.append(fold.read(each))
        if id(each) in seen:
            continue
        for key in ("anyOf", "oneOf"):
            if branches := each.get(key):
                inner = seen | {id(each)}
                meant = _meant_branches(root, branches, value)
                said.append(fold.join_any([_fold(root, one, value, fold, inner) for one in meant]))
    return fold.join_all(said)


def _all_say(answers: list[bool | None]) -> bool | None:
    if False in answers:
        return False
    return True if True in answers else None


def _one_says(answers: list[bool | None]) -> bool | None:
    if True in answers:
        return True
    return False if False in answers else None


def _join_all(schemas: list[Any]) -> Any:
    return _join("allOf", schemas)


def _join_any(schemas: list[Any]) -> Any:
    return _join("anyOf", schemas)


def _join(key: Literal["allOf", "anyOf"], schemas: list[Any]) -> Any:
    """These schemas as one; `None` without any.

    Branches often lead to the same schemas. Each is taken once, or a chain of values would have
    twice as many at each of its links.
    """
    found: dict[int, Any] = {}
    for schema in schemas:
        if _is_object(schema):
            parts = schema[key] if schema.keys() == {key} else [schema]
            found.update((id(part), part) for part in parts)
    if len(found) > 1:
        return {key: [*found.values()]}
    return next(iter(found.values()), None)


def _hold_together(root: Mapping[str, Any], node: Any) -> list[Mapping[str, Any]]:
    """`node`, where its `$ref` leads and what is in its `allOf`: a value has to fit all of them."""
    return _reach(root, node, ("allOf",))


def _reach(root: Mapping[str, Any], node: Any, keys: tuple[str, ...]) -> list[Mapping[str, Any]]:
    """`node` and the schemas that references and the lists of these keywords lead to."""
    found: dict[int, Mapping[str, Any]] = {}
    left = [node]
    while left:
        each = left.pop()
        if not _is_object(each) or id(each) in found:
            continue
        found[id(each)] = each
        for key in keys:
            left += each.get(key, ())
        if isinstance(reference := each.get("$ref"), str):
            left.append(resolve(root, reference))
    return [*found.values()]


def _meant_branches(root: Mapping[str, Any], branches: list[Any], value: Any) -> list[Any]:
    """The branches of a union without those whose constants say that another one was meant."""
    if not _is_object(value):
        return branches
    left = [branch for branch in branches if not _names_other_kind(root, branch, value)]
    return left or branches


def _names_other_kind(root: Mapping[str, Any], branch: Any, value: Mapping[str, Any]) -> bool:
    """Whether a property has another value than the `const` or `enum` that `branch` has for it.

    A value of another type, such as `null`, may be one that has to be edited, and says nothing.
    """
    for node in _hold_together(root, branch):
        for name, said in node.get("properties", {}).items():
            if name not in value:
                continue
            for each in _hold_together(root, said):
                constants = [each["const"]] if "const" in each else each.get("enum", ())
                same_type = any(type(constant) is type(value[name]) for constant in constants)
                if same_type and value[name] not in constants:
                    return True
    return False


def _child_schema(node: Mapping[str, Any], part: str | int) -> Any:
    """What the own keywords of `node` say of a part; `None` if nothing."""
    if isinstance(part, str):
        properties = node.get("properties", {})
        if part in properties:
            return properties[part]
        # Which of several patterns is meant isn't looked up.
        return None if "patternProperties" in node else node.get("additionalProperties")
    rest = node.get("items")
    first = node.get("prefixItems")
    if _is_list(rest):  # the form of drafts before 2020-12
        first, rest = rest, node.get("additionalItems")
    return first[part] if _is_list(first) and part < len(first) else rest


def _takes_kind(node: Mapping[str, Any], kind: Literal["string", "null"]) -> bool:
    wanted = str if kind == "string" else type(None)
    if "const" in node:
        return isinstance(node["const"], wanted)
    if "enum" in node:
        return any(isinstance(value, wanted) for value in node["enum"])
    types = node.get("type", kind)
    return types == kind or (isinstance(types, list) and kind in types)


def _may_lack(node: Mapping[str, Any], name: str | int) -> bool | None:
    if name not in node.get("properties", ()):
        return None
    return name not in node.get("required", ())


class Edits:
    """Changes to what the model wrote, all of one kind made together or none."""

    def __init__(self) -> None:
        self.left_out: list[Path] = []
        self.decoded: dict[Path, Any] = {}

    def __bool__(self) -> bool:
        return bool(self.left_out or self.decoded)

    @property
    def repairs(self) -> tuple[ArgumentRepair, ...]:
        return tuple(ArgumentRepair(spell_path(path), "json_string") for path in self.decoded)

    def leave_out(self, data: Any) -> Any:
        """`data` without the nulls by which the model left something out, in place."""
        for path in self.left_out:
            del _parent_at(data, path)[path[-1]]
        return data

    def decode_texts(self, data: Any) -> Any:
        """`data` with what its texts hold in their places, in place."""
        for path, value in self.decoded.items():
            _parent_at(data, path)[path[-1]] = value
        return data


def find_edits(data: Any, failed: Iterable[Path], schema: SchemaLookup) -> Edits:
    """The edits that the values at the failing places allow; `data` stays as it is."""
    edits = Edits()
    for path in dict.fromkeys(path for path in failed if path):
        parent = _parent_at(data, path)
        if not has_part(parent, path[-1]):
            continue
        value = parent[path[-1]]
        if value is None and isinstance(parent, dict):
            if schema.is_optional(path) and not schema.takes(path, "null"):
                edits.left_out.append(path)
        elif isinstance(value, str) and not schema.takes(path, "string"):
            try:
                edits.decoded[path] = from_json(value, allow_inf_nan=False)
            except (ValueError, RecursionError):
                continue
    return edits


def _parent_at(data: Any, path: Path) -> Any:
    for part in path[:-1]:
        data = data[part] if has_part(data, part) else None
    return data


def has_part(value: Any, part: str | int) -> bool:
    """Whether a key or position leads deeper into `value`."""
    if _is_object(value):
        return part in value
    return _is_list(value) and isinstance(part, int) and -1 < part < len(value)


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
