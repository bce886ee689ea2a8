"""Which JSON Schema OpenAI takes as a function's parameters, plain and strict. Chat and Responses share it.

Source: OpenAI's structured outputs guide and the errors that users report; see each rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.problem import Certainty, Problem, items, mapping
from lutumpy.rules.schema_walk import Path, resolve, type_names, walk

ROOT_FORBIDDEN = ("oneOf", "anyOf", "allOf", "enum", "not")
STRICT_FORBIDDEN = (
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
)
STRICT_DOUBTFUL = (
    "minLength",
    "maxLength",
    "uniqueItems",
    "propertyNames",
    "minProperties",
    "maxProperties",
)
FINE_TUNED_FORBIDDEN = (
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "multipleOf",
    "patternProperties",
    "minItems",
    "maxItems",
)
STRICT_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
MAX_PROPERTIES = 5000
MAX_LEVELS = 10
MAX_CHARACTERS = 120_000
MAX_ENUM_VALUES = 1000
MAX_LONG_ENUM_CHARACTERS = 15_000
LONG_ENUM = 250

_CODE = "invalid_function_parameters"


def check_parameters(
    prefix: str,
    name: str,
    schema: Any,
    where: str,
    *,
    strict: bool = False,
    model: str | None = None,
) -> list[Problem]:
    """Problems of one function's parameters; `where` is the position of the schema in the request.

    Error code `invalid_function_parameters` [recorded], `param` the schema's position.
    """
    checker = _Checker(prefix, name, where)
    if not isinstance(schema, Mapping):
        return checker.found
    checker.root(schema)
    for path, _, node in walk(schema):
        if isinstance(node, Mapping):
            checker.array_items(path, node)
    if strict and not checker.found:
        checker.strict(schema, fine_tuned=model is not None and model.startswith("ft:"))
    return checker.found


class _Checker:
    def __init__(self, prefix: str, name: str, where: str) -> None:
        self.prefix = prefix
        self.name = name
        self.where = where
        self.found: list[Problem] = []

    def add(
        self, rule: str, message: str, certainty: Certainty = "refused", path: Path | None = None
    ) -> None:
        context = "" if path is None else f"In context={path!r}, "
        text = f"Invalid schema for function '{self.name}': {context}{message}"
        self.found.append(
            Problem(
                f"{self.prefix}.{rule}",
                self.where,
                text,
                certainty,
                param=self.where,
                code=_CODE,
                tools=(self.name,),
            )
        )

    def root(self, schema: Mapping[str, Any]) -> None:
        """The root is an object schema without combinators, strict or not."""
        kind = schema.get("type")
        if any(key in schema for key in ROOT_FORBIDDEN):
            message = "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
            self.add("schema_root", message)
        elif kind != "object":
            # An empty schema is often sent for "no arguments"; hosts differ on it.
            certainty: Certainty = "refused" if schema else "some"
            message = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
            self.add("schema_root", message, certainty)
        elif not isinstance(schema.get("properties"), Mapping):
            self.add("schema_properties", "object schema missing properties.", "some", ())

    def array_items(self, path: Path, node: Mapping[str, Any]) -> None:
        if "array" in type_names(node) and "items" not in node:
            self.add("schema_items", "array schema missing items.", path=path)

    def strict(self, schema: Mapping[str, Any], fine_tuned: bool) -> None:
        properties = characters = enum_values = levels = 0
        for path, level, node in walk(schema):
            if not isinstance(node, Mapping):
                self.add("strict_type", "schema must have a 'type' key.", "some", path)
                continue
            if "object" in type_names(node):
                levels = max(levels, level)
            self.reference(path, node, schema)
            self.type_key(path, node)
            self.object(path, node)
            self.keywords(path, node, fine_tuned)
            self.first_keys(path, node, schema)
            names = mapping(node.get("properties")) or {}
            properties += len(names)
            values = list(items(node.get("enum")))
            enum_values += len(values)
            in_enum = sum(len(value) for value in values if isinstance(value, str))
            if len(values) > LONG_ENUM and in_enum > MAX_LONG_ENUM_CHARACTERS:
                message = (
                    f"enum with {len(values)} values exceeds limit of {MAX_LONG_ENUM_CHARACTERS} characters "
                    f"with {in_enum}."
                )
                self.add("strict_limits", message, path=path)
            const = node.get("const")
            characters += (
                in_enum
                + sum(len(str(key)) for key in names)
                + (len(const) if isinstance(const, str) else 0)
            )
            characters += sum(len(str(key)) for key in (mapping(node.get("$defs")) or {}))
        if levels > MAX_LEVELS:
            self.add("strict_limits", f"{levels} levels of nesting exceeds limit of {MAX_LEVELS}.")
        if properties > MAX_PROPERTIES:
            self.add("strict_limits", f"{properties} parameters exceeds limit of {MAX_PROPERTIES}.")
        if enum_values > MAX_ENUM_VALUES:
            self.add(
                "strict_limits", f"{enum_values} enum values exceeds limit of {MAX_ENUM_VALUES}."
            )
        if characters > MAX_CHARACTERS:
            self.add("strict_limits", f"{characters} characters exceeds limit of {MAX_CHARACTERS}.")

    def reference(self, path: Path, node: Mapping[str, Any], root: Mapping[str, Any]) -> None:
        """`$ref` is local, leads somewhere and stands alone."""
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return
        siblings = sorted(str(key) for key in node if key not in ("$ref", "$defs", "definitions"))
        if siblings:
            shown = ", ".join(repr(key) for key in siblings)
            self.add("strict_ref", f"$ref cannot have keywords {{{shown}}}.", path=path)
        if resolve(root, reference) is None:
            message = f"reference to component '{reference}' which was not found in the schema."
            self.add("strict_ref", message, path=path)

    def type_key(self, path: Path, node: Mapping[str, Any]) -> None:
        if not any(
            key in node for key in ("type", "$ref", "anyOf", "enum", "const", *STRICT_FORBIDDEN)
        ):
            self.add("strict_type", "schema must have a 'type' key.", path=path)

    def object(self, path: Path, node: Mapping[str, Any]) -> None:
        """Closed, with every property required: 712 recorded strict requests all obey."""
        if "object" not in type_names(node) and not isinstance(node.get("properties"), Mapping):
            return
        if node.get("additionalProperties") is not False:
            message = "'additionalProperties' is required to be supplied and to be false."
            self.add("strict_additional_properties", message, path=path)
        names = mapping(node.get("properties")) or {}
        wanted = node.get("required")
        required = {key for key in items(wanted) if isinstance(key, str)}
        lacking = [key for key in names if key not in required]
        extra = sorted(key for key in required if key not in names)
        base = "'required' is required to be supplied and to be an array including every key in properties."
        if lacking:
            self.add("strict_required", f"{base} Missing '{lacking[0]}'.", path=path)
        elif extra:
            self.add(
                "strict_required", f"{base} Extra required key '{extra[0]}' supplied.", path=path
            )

    def keywords(self, path: Path, node: Mapping[str, Any], fine_tuned: bool) -> None:
        refused = STRICT_FORBIDDEN + (FINE_TUNED_FORBIDDEN if fine_tuned else ())
        for key in node:
            if key in refused:
                self.add("strict_keywords", f"'{key}' is not permitted.", path=path)
            elif key in STRICT_DOUBTFUL:
                self.add("strict_keywords", f"'{key}' is not permitted.", "some", path)
        form = node.get("format")
        if isinstance(form, str) and form not in STRICT_FORMATS:
            self.add("strict_format", f"'{form}' is not a valid format.", path=path)

    def first_keys(self, path: Path, node: Mapping[str, Any], root: Mapping[str, Any]) -> None:
        """Objects in `anyOf` differ in their first key, or in its constant."""
        seen: set[str] = set()
        for variant in items(node.get("anyOf")):
            target = mapping(variant)
            if target is not None and isinstance(target.get("$ref"), str):
                target = mapping(resolve(root, target["$ref"]))
            names = mapping(target.get("properties")) if target is not None else None
            if not names:
                continue
            first = next(iter(names))
            value = mapping(names[first]) or {}
            label = f"{first} {value.get('const')!r} {value.get('enum')!r}"
            if label in seen:
                message = (
                    "Objects provided via 'anyOf' must not share identical first keys. Consider adding a discriminator "
                    "key or rearranging the properties to ensure the first key is unique."
                )
                self.add("strict_any_of", message, "some", path)
                return
            seen.add(label)
