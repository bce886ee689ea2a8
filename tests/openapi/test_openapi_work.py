"""Reading a document takes work that grows with its length, whatever its schemas are made of.

Work is counted, as references that are looked up: no test here asks for the time.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from openapi_toolkit import Sent, document

from lutumpy.openapi import OpenApiTools, tools
from lutumpy.openapi.document import Document


def refer(number: int) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/S{number}"}


def composed(count: int, word: str, branches: int = 2) -> dict[str, Any]:
    """Schemas that are composed of those behind them, with read-only properties."""
    return {
        f"S{number}": {
            word: [refer(number + step) for step in range(1, branches + 1) if number + step < count]
            or [{}],
            "properties": {f"p{number}": {**refer((number * 7) % count), "readOnly": True}},
            "discriminator": {"propertyName": "p0"},
        }
        for number in range(count)
    }


def with_bodies(schemas: dict[str, Any], bodies: list[Any]) -> dict[str, Any]:
    paths = {
        f"/x{number}": {"post": {"requestBody": {"content": {"application/json": {"schema": one}}}}}
        for number, one in enumerate(bodies)
    }
    return document(paths, components={"schemas": schemas})


class Work:
    """Counts the references that are looked up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        find = Document.find

        def find_counted(document: Document, reference: Any) -> Any:
            self.count += 1
            return find(document, reference)

        monkeypatch.setattr(Document, "find", find_counted)

    def of(self, source: dict[str, Any], **options: Any) -> tuple[int, OpenApiTools]:
        self.count = 0
        found = tools(source, call=Sent(), **options)
        return self.count, found


@pytest.mark.slow
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("word", ["allOf", "anyOf", "oneOf"])
def test_composed_schemas_are_read_in_bounded_work(
    word: str, closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(monkeypatch)
    for branches in (2, 5):
        counts = []
        for count in (40, 80, 160):
            source = with_bodies(composed(count, word, branches), [refer(0)])
            steps, found = work.of(source, closed=closed, outputs=True)
            assert len(found) + len(found.skipped) == 1
            counts.append(steps)
        # No more than the square of the number of schemas, and never more than the bounds.
        assert counts[2] < 5 * counts[1] < 25 * counts[0]
        assert max(counts) < 60_000


@pytest.mark.slow
def test_operations_that_share_schemas_do_not_read_them_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = Work(monkeypatch)
    chain = {
        f"S{number}": {
            "allOf": [refer(number + 1)] if number < 11 else [{}],
            "properties": {f"p{number}": {"type": "string", "readOnly": number % 2 == 0}},
        }
        for number in range(12)
    }
    one, _ = work.of(with_bodies(chain, [refer(0)]))
    many, found = work.of(with_bodies(chain, [refer(0)] * 200))
    assert len(found) == 200
    assert many <= one + 5 * 200


def test_a_schema_that_multiplies_skips_its_operation_alone() -> None:
    schemas: dict[str, Any] = {**composed(40, "anyOf"), "Fine": {"properties": {"a": refer(99)}}}
    schemas["S99"] = {"type": "string"}
    bodies = [refer(0), {"$ref": "#/components/schemas/Fine"}, *[refer(0)] * 20, {"type": "string"}]
    found = tools(with_bodies(schemas, bodies), call=Sent())
    assert [tool.original_name for tool in found] == ["POST /x1", "POST /x22"]
    assert all("schemas" in why for why in found.skipped.values())


def test_a_schema_of_too_many_parts_skips_its_operation() -> None:
    wide = {"Wide": {"allOf": [{"minProperties": 1}] * 10_001}}
    found = tools(with_bodies(wide, [{"$ref": "#/components/schemas/Wide"}, {}]), call=Sent())
    assert [tool.original_name for tool in found] == ["POST /x1"]
    assert found.skipped == {"POST /x0": "a schema of it is composed of more than 10000 parts"}


def test_copies_of_shared_schemas_are_bounded_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lutumpy.openapi.schemas._MOST_IN_ALL", 50)
    schemas: dict[str, Any] = {
        f"S{number}": {"properties": {"a": refer(number + 1)}} for number in range(9)
    }
    schemas["S9"] = {"type": "object"}
    found = tools(with_bodies(schemas, [refer(0)] * 8 + [{}]), call=Sent())
    assert [tool.original_name for tool in found] == [f"POST /x{n}" for n in (0, 1, 2, 3, 4, 8)]
    assert "take fewer" in found.skipped["POST /x5"]
    # A large document has larger needs; what stands in several places is counted once.
    monkeypatch.setattr("lutumpy.openapi.schemas._LARGE", 0)
    document = with_bodies(schemas, [refer(0)] * 8 + [{}])
    assert tools(document, call=Sent()).skipped == {}
    schemas["S9"] = {**schemas["S9"], "x-copies": [document["paths"]] * 100_000}
    monkeypatch.setattr("lutumpy.openapi.schemas._LARGE", 50)
    assert tools(with_bodies(schemas, [refer(0)] * 8 + [{}]), call=Sent()).skipped


@pytest.mark.slow
def test_any_composition_is_read_in_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(25)
    work = Work(monkeypatch)
    for _ in range(25):
        count = chance.randrange(5, 40)
        schemas: dict[str, Any] = {}
        for number in range(count):
            words = chance.sample(["allOf", "anyOf", "oneOf", "not", "items"], 2)
            schema: dict[str, Any] = {"discriminator": {"propertyName": "a"}}
            for word in words:
                parts = [refer(chance.randrange(count)) for _ in range(chance.randrange(1, 5))]
                schema[word] = parts if word.endswith("Of") else parts[0]
            names = chance.sample("abcdefgh", 3)
            schema["properties"] = {
                name: {**refer(chance.randrange(count)), "readOnly": chance.random() < 0.3}
                for name in names
            }
            schema["required"] = [*"abcdefgh"]
            schemas[f"S{number}"] = schema
        bodies = [refer(chance.randrange(count)) for _ in range(5)]
        steps, found = work.of(with_bodies(schemas, bodies), closed=chance.random() < 0.5)
        assert len(found) + len(found.skipped) == 5
        assert steps < 4_000 * count
