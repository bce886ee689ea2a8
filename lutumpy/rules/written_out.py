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

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.problem import is_array, is_object, items
from lutumpy.rules.schema_references import definitions_for, join_schemas, without_definitions
from lutumpy.rules.schema_walk import LISTS, resolve, walk

__all__ = ["written_out"]

_REWRITTEN = frozenset(("$ref", "oneOf", "const", "allOf"))
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
    written = _Writer(schema).write(without_definitions(schema))
    return {**written, **definitions_for(written, schema)}


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
                target = without_definitions(target)
            joined = join_schemas(target, schema, "$ref")
            if joined is None or reference in within or not self._references_left:
                return {"type": target["type"], **schema} if "type" in target else dict(schema)
            self._references_left -= 1
            return self.write(joined, level + 1, (*within, reference))
        parts = items(schema.get("allOf"))
        if len(parts) == 1 and is_object(parts[0]):
            joined = join_schemas(parts[0], schema, "allOf")
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
