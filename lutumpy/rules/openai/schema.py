"""Which JSON Schema OpenAI takes as a function's parameters, on both of its APIs.

Sources: OpenAI's guide to structured outputs, and the refusals that users report; see each rule.
"""

# Two laws are here. Every function's parameters are an object schema without combinators at the
# root. A strict function's parameters are a subset of JSON Schema besides: closed objects, required
# properties, few keywords, and limits of size (`rules.openai.limits`).

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.openai.limits import (
    LONG_ENUM,
    MAX_LONG_ENUM_CHARACTERS,
    MAX_STRICT_CHARACTERS,
    MAX_STRICT_ENUM_VALUES,
    MAX_STRICT_LEVELS,
    MAX_STRICT_PROPERTIES,
)
from lutumpy.rules.problem import Certainty, Problem, items, mapping
from lutumpy.rules.schema_walk import Path, lacks_items, resolve, type_names, walk
from lutumpy.rules.strict import OPENAI_STRICT

ROOT_FORBIDDEN = frozenset({"oneOf", "anyOf", "allOf", "enum", "not", "const"})
"""Keywords that no function's parameters may have at the root [reported]."""
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
"""Keywords that a strict schema may have nowhere [guide]."""
STRICT_DOUBTFUL = (
    "minLength",
    "maxLength",
    "uniqueItems",
    "propertyNames",
    "minProperties",
    "maxProperties",
)
"""Keywords that are on no list, so nobody knows for sure whether they are refused."""
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
"""Keywords that a fine-tuned model's strict schema may not have either [guide]."""

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
    """The problems of one function's parameters, all with the code `invalid_function_parameters`
    and the schema's position as `param` [recorded].

    Args:
        prefix: How the rules' ids begin: `chat` or `responses`.
        name: The function's name, for the texts.
        schema: The parameters. What isn't an object is another rule's problem.
        where: The position of the schema in the request.
        strict: The function asks to be strict.
        model: The request's model; a fine-tuned one takes fewer keywords.
    """
    checker = _SchemaChecker(prefix, name, where)
    if not isinstance(schema, Mapping):
        return checker.found
    checker.check_root(schema)
    if lacks_items(schema):
        for path, _, node in walk(schema):
            if isinstance(node, Mapping):
                checker.check_array(path, node)
    # OpenAI reads a schema as a strict one only after it took it as a plain one.
    if strict and not checker.found:
        is_fine_tuned = model is not None and model.startswith("ft:")
        checker.check_strict(schema, is_fine_tuned)
    return checker.found


class _SchemaChecker:
    """Collects the problems of one schema. Paths lead to the part of it that is wrong."""

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

    def check_root(self, schema: Mapping[str, Any]) -> None:
        """The root is an object schema without combinators, strict or not."""
        kind = schema.get("type")
        if not ROOT_FORBIDDEN.isdisjoint(schema):
            const = "/'const'" if "const" in schema else ""  # the newer text names it too
            message = (
                "schema must have type 'object' and not have "
                f"'oneOf'/'anyOf'/'allOf'/'enum'/'not'{const} at the top level."
            )
            self.add("schema_root", message)
        elif kind != "object":
            # An empty schema is often sent for "no arguments"; hosts differ on it.
            certainty: Certainty = "refused" if schema else "some"
            message = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
            self.add("schema_root", message, certainty)
        elif not isinstance(schema.get("properties"), Mapping):
            self.add("schema_properties", "object schema missing properties.", "some", ())

    def check_array(self, path: Path, node: Mapping[str, Any]) -> None:
        """An array says what its items are, strict or not [reported]."""
        if "array" in type_names(node) and "items" not in node:
            self.add("schema_items", "array schema missing items.", path=path)

    def check_strict(self, schema: Mapping[str, Any], is_fine_tuned: bool) -> None:
        """The subset and the limits of size that strict mode has."""
        properties = characters = enum_values = levels = 0
        for path, level, node in walk(schema):
            if not isinstance(node, Mapping):
                self.add("strict_type", "schema must have a 'type' key.", "some", path)
                continue
            if "object" in type_names(node):
                levels = max(levels, level)
            self.check_reference(path, node, schema)
            self.check_type(path, node)
            self.check_object(path, node)
            self.check_keywords(path, node, is_fine_tuned)
            self.check_first_keys(path, node, schema)
            names = mapping(node.get("properties")) or {}
            properties += len(names)
            values = list(items(node.get("enum")))
            enum_values += len(values)
            in_enum = sum(len(value) for value in values if isinstance(value, str))
            if len(values) > LONG_ENUM and in_enum > MAX_LONG_ENUM_CHARACTERS:
                message = (
                    f"enum with {len(values)} values exceeds limit of "
                    f"{MAX_LONG_ENUM_CHARACTERS} characters with {in_enum}."
                )
                self.add("strict_limits", message, path=path)
            # What counts as characters of the schema: names, enum values and constants; no
            # descriptions [guide].
            characters += in_enum
            characters += sum(len(str(key)) for key in names)
            characters += sum(len(str(key)) for key in (mapping(node.get("$defs")) or {}))
            const = node.get("const")
            if isinstance(const, str):
                characters += len(const)
        self.check_limit(levels, MAX_STRICT_LEVELS, "levels of nesting")
        self.check_limit(properties, MAX_STRICT_PROPERTIES, "parameters")
        self.check_limit(enum_values, MAX_STRICT_ENUM_VALUES, "enum values")
        self.check_limit(characters, MAX_STRICT_CHARACTERS, "characters")

    def check_limit(self, number: int, limit: int, what: str) -> None:
        if number > limit:
            self.add("strict_limits", f"{number} {what} exceeds limit of {limit}.")

    def check_reference(self, path: Path, node: Mapping[str, Any], root: Mapping[str, Any]) -> None:
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

    def check_type(self, path: Path, node: Mapping[str, Any]) -> None:
        """Every schema says its type, or has a keyword that stands for one."""
        instead = ("type", "$ref", "anyOf", "enum", "const", *STRICT_FORBIDDEN)
        if not any(key in node for key in instead):
            self.add("strict_type", "schema must have a 'type' key.", path=path)

    def check_object(self, path: Path, node: Mapping[str, Any]) -> None:
        """An object is closed, and every property is required [712 recorded strict requests]."""
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
        base = (
            "'required' is required to be supplied and to be an array including every key in "
            "properties."
        )
        if lacking:
            self.add("strict_required", f"{base} Missing '{lacking[0]}'.", path=path)
        elif extra:
            self.add(
                "strict_required", f"{base} Extra required key '{extra[0]}' supplied.", path=path
            )

    def check_keywords(self, path: Path, node: Mapping[str, Any], is_fine_tuned: bool) -> None:
        """Keywords and formats that strict mode doesn't have."""
        refused = STRICT_FORBIDDEN + (FINE_TUNED_FORBIDDEN if is_fine_tuned else ())
        for key in node:
            if key in refused:
                self.add("strict_keywords", f"'{key}' is not permitted.", path=path)
            elif key in STRICT_DOUBTFUL:
                self.add("strict_keywords", f"'{key}' is not permitted.", "some", path)
        form = node.get("format")
        if isinstance(form, str) and form not in OPENAI_STRICT.formats:
            self.add("strict_format", f"'{form}' is not a valid format.", path=path)

    def check_first_keys(
        self, path: Path, node: Mapping[str, Any], root: Mapping[str, Any]
    ) -> None:
        """Objects in `anyOf` differ in their first key, or in its constant [reported]."""
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
                    "Objects provided via 'anyOf' must not share identical first keys. Consider "
                    "adding a discriminator key or rearranging the properties to ensure the first "
                    "key is unique."
                )
                self.add("strict_any_of", message, "some", path)
                return
            seen.add(label)
