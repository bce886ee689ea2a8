"""Arguments that a tool of a real document takes, made from its schema."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from typing import Any

from lutumpy import DynamicTool, InvalidArgumentsError, ToolMetadata, Toolset

# What a value might be that has to be encoded for its place.
TEXTS = ["a", "two words", "a/b", "é&=+%", "1", "x,y|z", "50%", '"quoted"', "a.b-c_d~", "?#[]"]
FORMATS = {
    "date": "2026-11-27",
    "date-time": "2026-11-27T10:20:30Z",
    "time": "10:20:30Z",
    "email": "a.b+c@example.org",
    "uri": "https://example.org/a?b=c&d=e",
    "url": "https://example.org/a?b=c&d=e",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.org",
    "byte": "YQ==",
}
# Tried where a text has to fit a pattern.
FITTING = [
    *("a", "A", "1", "12", "123", "1234", "12345", "123456789", "abc", "ABC", "Abc1", "a-b", "a_b"),
    *("a.b", "US", "en", "en-us", "10.0.0.0/16", "1.0", "1.2.3", "#ff0000", "true", "192.0.2.1"),
    *(f"{letter}12345678" for letter in "CDGUWTFBSR"),
    *("1234567890.123456", "enterprise_1", "folder_1", "application/json", "/a/b", "c" * 40),
    *FORMATS.values(),
]


class Sampler:
    """Draws values that fit a schema, as far as the schema is simple enough.

    Attributes:
        full: Whether optional properties are drawn too, down to three levels.
    """

    def __init__(self, schema: Mapping[str, Any], chance: random.Random, full: bool) -> None:
        self.definitions = schema.get("$defs", {})
        self.chance = chance
        self.full = full

    def draw(self, schema: Any, depth: int = 0) -> Any:
        if not isinstance(schema, Mapping):
            return self.chance.choice(TEXTS)
        if "$ref" in schema:
            return self.draw(self.definitions[schema["$ref"].rpartition("/")[2]], depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.chance.choice(schema["enum"])
        for word in ("oneOf", "anyOf"):
            if word in schema:
                others = {key: value for key, value in schema.items() if key != word}
                branches = [one for one in schema[word] if one != {"type": "null"}] or schema[word]
                return self.draw(self.merge(others, self.chance.choice(branches)), depth)
        if "allOf" in schema:
            others = {key: value for key, value in schema.items() if key != "allOf"}
            for part in schema["allOf"]:
                others = self.merge(others, part)
            return self.draw(others, depth)
        return self.draw_of_type(schema, depth)

    def merge(self, schema: Mapping[str, Any], other: Any) -> dict[str, Any]:
        """A schema that asks for what both ask for, where they don't contradict each other."""
        while isinstance(other, Mapping) and "$ref" in other:
            rest = {key: value for key, value in other.items() if key != "$ref"}
            found = self.definitions[other["$ref"].rpartition("/")[2]]
            other = {**found, **rest} if isinstance(found, Mapping) else rest
        if not isinstance(other, Mapping):
            return dict(schema)
        merged = {**schema, **other}
        if "properties" in schema and "properties" in other:
            merged["properties"] = {**schema["properties"], **other["properties"]}
        if "required" in schema or "required" in other:
            merged["required"] = [*schema.get("required", []), *other.get("required", [])]
        if "allOf" in schema and "allOf" in other:
            merged["allOf"] = [*schema["allOf"], *other["allOf"]]
        return merged

    def draw_of_type(self, schema: Mapping[str, Any], depth: int) -> Any:
        kinds = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kinds, list):  # a null shows little of how a value is spelled
            kinds = [kind for kind in kinds if kind != "null"] or kinds
        kind = self.chance.choice(kinds) if isinstance(kinds, list) else kinds
        if kind == "object":
            return self.draw_object(schema, depth)
        if kind == "array":
            fewest, most = schema.get("minItems", 0), schema.get("maxItems", 2)
            count = max(fewest, min(most, 2 if depth < 4 else 0))
            drawn = [self.draw(schema.get("items", {}), depth + 1) for _ in range(count)]
            return drawn if not schema.get("uniqueItems") else differing(drawn)
        if kind == "boolean":
            return self.chance.random() < 0.5
        if kind in ("integer", "number"):
            return self.draw_number(schema, kind)
        return None if kind == "null" else self.draw_text(schema)

    def draw_object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        drawn = {}
        properties = schema.get("properties", {})
        required = set(schema.get("required", []))
        for name in dict.fromkeys([*properties, *sorted(required)]):
            if name in required or (self.full and depth < 4 and properties[name] is not False):
                drawn[name] = self.draw(properties.get(name, {}), depth + 1)
        further = schema.get("additionalProperties")
        if self.full and depth < 4 and not properties and further is not False:
            drawn["some key"] = self.draw(further if further else {"type": "string"}, depth + 1)
        return drawn

    def draw_number(self, schema: Mapping[str, Any], kind: str) -> Any:
        lowest, highest = schema.get("minimum"), schema.get("maximum")
        if lowest is None:
            lowest = schema.get("exclusiveMinimum", min(0, 0 if highest is None else highest) - 1)
            lowest += 1
        step = schema.get("multipleOf", 1)
        number = -(-lowest // step) * step
        if highest is None or number + step <= highest:
            number += self.chance.choice([0, step])
        if kind == "number" and highest is None and step == 1 and self.chance.random() < 0.5:
            return number + 0.5
        return int(number) if number == int(number) else number

    def draw_text(self, schema: Mapping[str, Any]) -> str:
        if "pattern" in schema:
            fitting = [text for text in FITTING if re.search(schema["pattern"], text)]
            text = self.chance.choice(fitting or ["a"])
        elif schema.get("format") in FORMATS:
            return FORMATS[schema["format"]]
        else:
            text = self.chance.choice(TEXTS)
        fewest, most = schema.get("minLength", 0), schema.get("maxLength", len(text) + 1_000)
        return (text * (fewest // len(text) + 1) if len(text) < fewest else text)[:most]


def differing(values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def sample_calls(tool: DynamicTool, tries: int = 40) -> list[Any]:
    """Calls of a tool, ready to run: with what it requires alone, and with all it takes.

    Where no arguments could be found that the tool takes, there are fewer.
    """
    toolset = Toolset.of("One", [tool])
    calls = []
    for full in (False, True):
        for seed in range(tries):
            drawn = Sampler(tool.schema, random.Random(seed), full).draw(tool.schema)
            try:
                calls.append(toolset.parse(ToolMetadata("c1", tool.name, json.dumps(drawn))))
            except InvalidArgumentsError:
                continue
            break
    return calls
