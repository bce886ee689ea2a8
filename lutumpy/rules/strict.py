"""JSON Schemas in the strict form of a provider (rule D5).

A strict tool makes the provider hold the model to the schema token by token, for a subset of JSON
Schema. `strict_schema` rewrites a schema into such a subset. What the subset has no word for goes
into the description, where the model still reads it; what can't be said at all is a
`DeclarationError` with its path. Which subset is data: a `Dialect`.
"""

# What is hard here
# -----------------
# A strict form may accept less than the schema did, but never more, and it must not lose what the
# model is told. So each keyword goes one of five ways:
#
#   | keyword                               | way                                             |
#   |---------------------------------------|-------------------------------------------------|
#   | types, enums, `properties`, `items`   | stay; objects are closed                        |
#   | limits that the dialect takes         | stay (`Dialect.keywords`, `formats`)            |
#   | other limits, `default`, `examples`   | become words at the end of the description      |
#   | `oneOf`, a single `allOf`, a `$ref`   | rewritten: `anyOf`; merged with what is there   |
#   | with siblings, a tuple of one type    | beside; `items`                                 |
#   | `not`, `if`, `patternProperties`, ... | refused: no words make the model hold to these  |
#
# Recursion: inlining a reference never ends when the definition leads back to it, so such
# references are found first (`recursive`) and get a branch of their own in place of inlining.
#
# Optional properties: OpenAI wants every property required. An optional one then takes null as
# well, and the null is read as "left out" when the call is decoded. Anthropic takes optional
# properties, but only so many in a request (`strict_counts`). The property that tells the branches
# of a union apart is required in both, default or not: without it nothing says which one is meant.

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from lutumpy.errors import DeclarationError
from lutumpy.plain.pointer import escape, pointer, tokens
from lutumpy.rules.problem import is_array, items, mapping
from lutumpy.rules.schema_walk import LISTS, circular_references, references, subschemas, walk
from lutumpy.rules.strict_notes import describe_keywords, keyword_note

__all__ = [
    "ANTHROPIC_STRICT",
    "DIALECTS",
    "OPENAI_STRICT",
    "Dialect",
    "StrictChange",
    "strict_changes",
    "strict_counts",
    "strict_schema",
]

Schema = dict[str, Any]

_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one provider's strict mode takes.

    Attributes:
        name: How errors call it.
        require_all: Every property must be required; an optional one is made nullable instead.
        recursion: Whether a definition may refer to itself.
        keywords: Limits and annotations that may stay where they are; the others move into the
            description.
        formats: Values of `format` that may stay.
        min_items: Values of `minItems` that may stay; `None` for all.
    """

    name: str
    require_all: bool
    recursion: bool
    keywords: frozenset[str]
    formats: frozenset[str] = _FORMATS
    min_items: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class StrictChange:
    """One difference between a strict form and the schema that it was made from.

    Attributes:
        path: Where, as a JSON Pointer in the schema; what a reference with siblings names counts as
            standing there.
        kind: `described`: a keyword went into the description, where nothing enforces it.
            `nullable`: an optional property became a required one that takes null. `any_of`:
            `oneOf` became `anyOf`.
        keyword: The keyword of `described`.
    """

    path: str
    kind: Literal["described", "nullable", "any_of"]
    keyword: str = ""


# The tables follow the providers' documentation and recorded answers. `default` is taken by OpenAI
# today, but older and compatible endpoints refuse it, and in a required property it has no meaning.
OPENAI_STRICT = Dialect(
    name="OpenAI",
    require_all=True,
    recursion=True,
    keywords=frozenset(
        {
            "pattern",
            "format",
            "multipleOf",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "minItems",
            "maxItems",
        }
    ),
)
ANTHROPIC_STRICT = Dialect(
    name="Anthropic",
    require_all=False,
    recursion=False,
    keywords=frozenset({"default", "format", "minItems"}),
    formats=_FORMATS | {"uri"},
    min_items=frozenset({0, 1}),
)

DIALECTS: tuple[Dialect, ...] = (OPENAI_STRICT, ANTHROPIC_STRICT)
"""All of them."""


# Keywords that restrict nothing, so they may be beside a reference and override what it says.
_ANNOTATIONS = frozenset(
    {
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
    }
)
# Left out without a word: they say nothing that a model could act on.
_SILENT = frozenset(
    {"$schema", "$id", "$anchor", "$comment", "discriminator", "readOnly", "writeOnly"}
)
# Restrictions that neither subset has a word for. In a description they would be a wish only.
_IMPOSSIBLE = frozenset(
    {
        "not",
        "if",
        "then",
        "else",
        "contains",
        "minContains",
        "maxContains",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "patternProperties",
        "propertyNames",
        "unevaluatedProperties",
        "unevaluatedItems",
        "$dynamicRef",
        "$recursiveRef",
    }
)
_LOOKAROUND = re.compile(r"\(\?<?[=!]")  # no provider's grammar takes these in a pattern


def _is_object(value: Any) -> TypeGuard[Schema]:
    return isinstance(value, dict)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def strict_schema(schema: Mapping[str, Any], dialect: Dialect) -> Schema:
    """`schema`, a tool's input schema, in the strict form of `dialect`; the argument isn't changed.

    Raises:
        DeclarationError: The schema has no strict form; the message names the path in it.
    """
    return _Rewrite(dict(schema), dialect).run()


def strict_changes(
    schema: Mapping[str, Any], dialect: Dialect
) -> tuple[Schema, tuple[StrictChange, ...]]:
    """As `strict_schema`, together with what became different, each place once."""
    rewrite = _Rewrite(dict(schema), dialect)
    return rewrite.run(), tuple(dict.fromkeys(rewrite.changes))


def strict_counts(schema: Any) -> tuple[int, int]:
    """The numbers of optional and of union parameters in a schema.

    Anthropic limits both over all strict tools of a request. A parameter is optional when its
    object doesn't require it. A union is a schema with a list of types or with a non-empty `anyOf`.
    A shared definition counts once. Any JSON value is taken, however deep.
    """
    optional = unions = 0
    for _, _, node in walk(schema):
        if not isinstance(node, Mapping):
            continue
        required = {name for name in items(node.get("required")) if isinstance(name, str)}
        properties = mapping(node.get("properties")) or {}
        optional += sum(1 for name in properties if name not in required)
        # "17 parameters with type arrays or anyOf": an empty `anyOf` isn't valid JSON Schema, and
        # unites nothing.
        unions += is_array(node.get("type")) or bool(items(node.get("anyOf")))
    return optional, unions


class _Rewrite:
    """One run over one schema."""

    def __init__(self, root: Schema, dialect: Dialect) -> None:
        self.root = root
        self.dialect = dialect
        self.changes: list[StrictChange] = []
        self.first_property = dict(_discriminators(root))
        self.recursive = circular_references(root, self.resolve)

    def run(self) -> Schema:
        root = self.root
        if root.get("type") != "object" or any(
            key in root for key in (*LISTS, "$ref", "enum", "const", "not")
        ):
            raise self.no_form((), "the root must be a plain object")
        if self.recursive and not self.dialect.recursion:
            raise self.no_form(
                tuple(tokens(min(self.recursive))), "the definition refers to itself"
            )
        body = {key: value for key, value in root.items() if key not in ("$defs", "definitions")}
        body.setdefault("properties", {})
        out = self.rewrite(body, ())
        waiting = [*references(out)]
        done: dict[str, Schema] = {}
        while waiting:
            where, ref = waiting.pop()
            if ref not in done and ref != "#":
                path = tuple(tokens(ref))
                done[ref] = self.rewrite(self.resolve(ref, where), path)
                waiting += references(done[ref], path)
        for container in ("$defs", "definitions"):
            for name in root.get(container, ()):
                ref = f"#/{container}/{escape(name)}"
                if ref in done:
                    out.setdefault(container, {})[name] = done[ref]
        return out

    def no_form(self, path: tuple[str, ...], reason: str) -> DeclarationError:
        where = pointer(path) or "/"
        return DeclarationError(
            f"the schema has no strict form for {self.dialect.name} at {where}: {reason}"
        )

    def note(
        self,
        path: tuple[str, ...],
        kind: Literal["described", "nullable", "any_of"],
        keyword: str = "",
    ) -> None:
        self.changes.append(StrictChange(pointer(path), kind, keyword))

    def resolve(self, ref: str, path: tuple[str, ...]) -> Schema:
        """The definition that a local `$ref` names."""
        if ref == "#":
            return self.root
        parts = tokens(ref)
        if len(parts) != 2 or parts[0] not in ("$defs", "definitions"):
            raise self.no_form(path, f"the reference {ref!r} is not to a definition of this schema")
        target = self.root.get(parts[0], {}).get(parts[1])
        if not _is_object(target):
            raise self.no_form(path, f"the reference {ref!r} leads nowhere")
        return target

    def rewrite(self, schema: Schema, path: tuple[str, ...]) -> Schema:
        schema = self.flatten(schema, path)
        if not any(
            key in schema
            for key in ("type", "anyOf", "oneOf", "enum", "const", "$ref", "properties")
        ):
            raise self.no_form(path, "any value is allowed here; give it a type")
        for key in sorted(_IMPOSSIBLE & schema.keys()):
            raise self.no_form(path, f"{key!r} can't be expressed")
        out: Schema = {}
        notes: dict[str, str] = {}
        for key, value in schema.items():
            if key in ("type", "title", "description", "$ref", "required"):
                out[key] = value
            elif key in ("enum", "const"):
                self.check_scalars(value if key == "enum" else [value], (*path, key))
                out[key] = value
            elif key in ("anyOf", "oneOf"):
                if key == "oneOf":
                    self.note(path, "any_of")
                out["anyOf"] = [
                    self.branch(entry, (*path, key, str(i))) for i, entry in enumerate(value)
                ]
            elif key == "items":
                out[key] = self.branch(value, (*path, key))
            elif key not in ("properties", "additionalProperties", *_SILENT):
                if self.stays(key, value):
                    out[key] = value
                elif note := keyword_note(key, value):
                    notes[key] = note
                    self.note(path, "described", key)
        types = _types(schema)
        if "object" in types or "properties" in schema:
            self.close(schema, out, path)
        if "array" in types and "items" not in schema:
            raise self.no_form(path, "an array needs the type of its items")
        if notes:
            out["description"] = describe_keywords(out.get("description"), notes)
        return out

    def branch(self, schema: Any, path: tuple[str, ...]) -> Schema:
        if not _is_object(schema):
            raise self.no_form(
                path,
                "any value is allowed here; give it a type" if schema else "no value is allowed",
            )
        return self.rewrite(schema, path)

    def flatten(self, schema: Schema, path: tuple[str, ...]) -> Schema:
        """`schema` without what only groups: single `allOf`, references with siblings, tuples of
        one type.
        """
        if "allOf" in schema:
            entries = schema["allOf"]
            if len(entries) != 1 or not _is_object(entries[0]):
                raise self.no_form((*path, "allOf"), "more than one schema has to hold at once")
            rest = {key: value for key, value in schema.items() if key != "allOf"}
            schema = self.flatten(self.merged(entries[0], rest, (*path, "allOf")), path)
        if "$ref" in schema and schema.keys() - {"$ref"} - _SILENT:
            ref = schema["$ref"]
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            if (
                ref in self.recursive
            ):  # inlining would never end, and a branch of its own takes the annotations
                self.merged({}, rest, path)
                return {"anyOf": [{"$ref": ref}], **rest}
            return self.flatten(self.merged(self.resolve(ref, path), rest, path), path)
        if "anyOf" in schema and "oneOf" in schema:
            raise self.no_form(path, "both 'anyOf' and 'oneOf' have to hold")
        if "prefixItems" in schema:
            return self.same_items(schema, path)
        return schema

    def merged(self, target: Schema, siblings: Schema, path: tuple[str, ...]) -> Schema:
        """`target` with annotations that were beside it; anything else beside it would change what
        is accepted.
        """
        for key, value in siblings.items():
            if key not in _ANNOTATIONS | _SILENT and target.get(key, siblings) != value:
                raise self.no_form(
                    path, f"{key!r} stands beside a reference and would have to be merged with it"
                )
        return {**target, **siblings}

    def same_items(self, schema: Schema, path: tuple[str, ...]) -> Schema:
        entries = schema["prefixItems"]
        length = len(entries)
        fixed = schema.get("minItems") == schema.get("maxItems") == length and schema.get(
            "items"
        ) in (None, False)
        if not (length and fixed and all(entry == entries[0] for entry in entries)):
            raise self.no_form(
                (*path, "prefixItems"), "a tuple of several types can't be expressed; use an object"
            )
        return {
            **{key: value for key, value in schema.items() if key != "prefixItems"},
            "items": entries[0],
        }

    def check_scalars(self, values: list[Any], path: tuple[str, ...]) -> None:
        if any(isinstance(value, (dict, list)) for value in values):
            raise self.no_form(path, "only text, numbers, true, false and null can be listed")

    def stays(self, key: str, value: Any) -> bool:
        if key not in self.dialect.keywords:
            return False
        if key == "format":
            return value in self.dialect.formats
        if key == "minItems" and self.dialect.min_items is not None:
            return value in self.dialect.min_items
        return not (key == "pattern" and _LOOKAROUND.search(value))

    def close(self, schema: Schema, out: Schema, path: tuple[str, ...]) -> None:
        properties = schema.get("properties")
        if schema.get("additionalProperties", False) is not False or properties is None:
            raise self.no_form(path, "the object takes properties that are not named")
        out.setdefault("type", "object")
        required = schema.get("required", [])
        for name in required:
            if name not in properties:
                raise self.no_form(path, f"{name!r} is required, and is not among the properties")
        first = self.first_property.get(path)
        names = sorted(properties, key=lambda name: name != first)
        done: dict[str, Schema] = {}
        for name in names:
            inner_path = (*path, "properties", name)
            done[name] = self.branch(properties[name], inner_path)
            if self.dialect.require_all and name not in (*required, first):
                self.note(inner_path, "nullable")
                done[name] = self.nullable(done[name])
        out["properties"] = done
        if self.dialect.require_all:
            out["required"] = names
        elif first in properties and first not in required:
            out["required"] = [first, *required]
        out["additionalProperties"] = False

    def nullable(self, schema: Schema) -> Schema:
        """A rewritten `schema` that takes `null` as well."""
        if self.takes_null(schema):
            return schema
        if "anyOf" in schema and "type" not in schema:
            return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
        kind = schema.get("type")
        is_scalar = isinstance(kind, str) and kind not in ("object", "array")
        if is_scalar and "const" not in schema and "anyOf" not in schema:
            out = {**schema, "type": [kind, "null"]}
            if "enum" in schema:
                out["enum"] = [*schema["enum"], None]
            return out
        outer = {key: value for key, value in schema.items() if key in ("title", "description")}
        inner = {key: value for key, value in schema.items() if key not in outer}
        return {**outer, "anyOf": [inner, {"type": "null"}]}

    def takes_null(self, schema: Schema, seen: frozenset[str] = frozenset()) -> bool:
        if "$ref" in schema:
            ref = schema["$ref"]
            return ref not in seen and self.takes_null(self.resolve(ref, ()), seen | {ref})
        if "const" in schema:
            return schema["const"] is None
        if "enum" in schema:
            return None in schema["enum"]
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return any(self.takes_null(entry, seen) for entry in schema[key])
        return "null" in _types(schema)


def _types(schema: Schema) -> tuple[str, ...]:
    kind = schema.get("type", ())
    return (kind,) if isinstance(kind, str) else tuple(kind)


def _discriminators(schema: Schema) -> Iterator[tuple[tuple[str, ...], str]]:
    """Definitions that a discriminated union tells apart, each with the property that does it.

    OpenAI wants that property to come first: objects of a union "must not share identical first
    keys".
    """
    about = schema.get("discriminator")
    if _is_object(about) and isinstance(about.get("propertyName"), str):
        branches: list[Any] = schema.get("oneOf") or schema.get("anyOf") or []
        for branch in branches:
            if _is_object(branch) and isinstance(ref := branch.get("$ref"), str):
                yield tuple(tokens(ref)), about["propertyName"]
    for _, inner in subschemas(schema):
        yield from _discriminators(inner)
