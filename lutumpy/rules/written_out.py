"""Schemas of tools, written out for a server that doesn't show all of JSON Schema to its model."""

# What is hard here
# -----------------
# Some servers read a schema into typed fields, and write those into the prompt. Ollama's keeps of a
# property its `type`, `description`, `enum`, `items`, `anyOf`, and in newer releases `properties`
# and `required` (its api/types.go, `ToolProperty`; ollama/ollama#13472, #13508). What a property
# says by another keyword, the model never sees. A nested model is a `$ref`: of such a property
# nothing was left, and the model made its fields up. So
#
#   a schema says                 written instead
#   ----------------------------  -------------------------------------------------------------
#   `$ref`                        what it names, with what is beside the reference
#   `oneOf`                       `anyOf`
#   `const`                       `enum` with the one value
#   `allOf` of one schema         that schema, with what is beside it
#   `true`                        an empty schema; as a property, `true` is refused
#
# A definition that holds itself can't be written out, and many that hold each other often would
# grow without bounds. There the reference stays, with the type of what it names, and the
# definitions stay beside it.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lutumpy.plain.pointer import tokens
from lutumpy.rules.problem import is_array, is_object, items, mapping
from lutumpy.rules.schema_references import referring_parts
from lutumpy.rules.schema_walk import LISTS, resolve, walk

__all__ = ["written_out"]

_REWRITTEN = frozenset(("$ref", "oneOf", "const", "allOf"))
_DEFINITIONS = ("$defs", "definitions")
# What may be said beside a reference without restricting what it names.
_NOTES = frozenset(("description", "title", "default", "examples", "deprecated"))
# What one of these restricts depends on the others in the very same schema.
_TOGETHER = frozenset(
    "properties patternProperties additionalProperties unevaluatedProperties "
    "prefixItems items unevaluatedItems contains minContains maxContains if then else".split()
)
_MOST_LEVELS = 60
"""How deep schemas are rewritten, references followed; Python itself has room for some 300."""
_MOST_REFERENCES = 500
"""How many references of a tool are written out."""


def written_out(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a tool without references and rare keywords, for a server whose model would
    never see what they say: definitions stand where they are named, `oneOf` is `anyOf`, and `const`
    an `enum`.

    It takes the same values, but for those that fit several branches of a `oneOf`. The schema
    itself isn't changed; it is what is returned where nothing has to be written otherwise.

    Args:
        schema: An object, as `ToolSpec.schema`.
    """
    if not any(_is_lost(node) for _, _, node in walk(schema)):
        return schema
    written = _Writer(schema).write(_without_definitions(schema))
    return {**written, **_definitions_for(written, schema)}


def _without_definitions(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in _DEFINITIONS}


def _definitions_for(written: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions of a schema that the references left in it lead to, directly or not."""
    needed: dict[str, dict[str, Any]] = {}
    waiting = [*_references_in(written)]
    while waiting:
        reference = waiting.pop()
        if resolve(schema, reference) is None:  # by an address or an anchor, which any may have
            return {key: schema[key] for key in _DEFINITIONS if key in schema}
        steps = tokens(reference)
        if len(steps) < 2 or steps[0] not in _DEFINITIONS:
            continue
        named, definitions = needed.setdefault(steps[0], {}), mapping(schema.get(steps[0])) or {}
        if steps[1] in definitions and steps[1] not in named:
            named[steps[1]] = definitions[steps[1]]
            waiting += _references_in(definitions[steps[1]])
    return {key: named for key, named in needed.items() if named}


def _references_in(schema: Any) -> Iterator[str]:
    for _, part in referring_parts(schema):
        yield part["$ref"]


def _is_lost(node: Any) -> bool:
    return node is True or (is_object(node) and not _REWRITTEN.isdisjoint(node))


class _Writer:
    """Writes the parts of one schema."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._references_left = _MOST_REFERENCES

    def write(
        self, schema: Mapping[str, Any], level: int = 0, within: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """A schema, rewritten.

        Args:
            schema: An object.
            level: How many schemas and references it is in.
            within: The references that it is in.
        """
        if level > _MOST_LEVELS:
            return dict(schema)
        reference = schema.get("$ref")
        if isinstance(reference, str):
            target = resolve(self._root, reference)
            if not is_object(target):
                return dict(schema)
            if target is self._root:
                target = _without_definitions(target)
            joined = _join(target, schema, "$ref")
            if joined is None or reference in within or not self._references_left:
                return {"type": target["type"], **schema} if "type" in target else dict(schema)
            self._references_left -= 1
            return self.write(joined, level + 1, (*within, reference))
        parts = items(schema.get("allOf"))
        if len(parts) == 1 and is_object(parts[0]):
            joined = _join(parts[0], schema, "allOf")
            if joined is not None:
                return self.write(joined, level + 1, within)
        written = {
            key: self._write_under(key, value, level + 1, within) for key, value in schema.items()
        }
        if "oneOf" in written and "anyOf" not in written:
            written["anyOf"] = written.pop("oneOf")
            written.pop("discriminator", None)  # its mapping names the definitions
        if "const" in written and "enum" not in written:
            written["enum"] = [written.pop("const")]
        return written

    def _write_under(self, key: str, value: Any, level: int, within: tuple[str, ...]) -> Any:
        """What is under a key of a schema."""
        if key in ("properties", "patternProperties") and is_object(value):
            return {name: self._write_any(inner, level, within) for name, inner in value.items()}
        if key in LISTS and is_array(value):
            return [self._write_any(inner, level, within) for inner in value]
        if key in ("items", "additionalProperties") and is_object(value):
            return self.write(value, level, within)
        return value

    def _write_any(self, schema: Any, level: int, within: tuple[str, ...]) -> Any:
        if is_object(schema):
            return self.write(schema, level, within)
        return {} if schema is True else schema


def _join(schema: Mapping[str, Any], holder: Mapping[str, Any], key: str) -> dict[str, Any] | None:
    """A schema with what its holder says beside it; `None` where that would say something else.

    Args:
        schema: What is under `key` of the holder, or what that names.
        holder: The schema that refers to it.
        key: By which keyword.
    """
    beside = {name: value for name, value in holder.items() if name != key}
    if not _NOTES.issuperset(beside.keys() & schema.keys()):
        return None
    if not (_TOGETHER.isdisjoint(beside) or _TOGETHER.isdisjoint(schema)):
        return None
    return {**schema, **beside}
