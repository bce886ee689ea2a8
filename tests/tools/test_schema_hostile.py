"""Schemas of strangers: nothing is fetched, nothing is slow, nothing is raised but refusals.

A schema may come from a server that nobody trusts, and so may what the model was talked into
writing. Each schema here has hung or killed a process that took it as it is. (Rules Y1, Y3.)
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from counting import ended_if_endless
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import (
    DeclarationError,
    DynamicTool,
    InvalidArgumentsError,
    MalformedArgumentsError,
    OutputSchema,
    ToolMetadata,
    Toolset,
    UnknownToolError,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.tools import find_misfit

Schema = dict[str, Any]
ADAPTERS: list[Any] = [OpenAIChat, OpenAIResponses, AnthropicMessages]


def prop(schema: Any, **root: Any) -> Schema:
    return {"type": "object", "properties": {"a": schema}, **root}


def nested(levels: int, wrap: Callable[[Any], Any]) -> Schema:
    schema: Any = {"type": "string"}
    for _ in range(levels):
        schema = wrap(schema)
    return prop(schema)


def chain(
    length: int,
    link: Callable[[str], Schema],
    *,
    name: Callable[[int], Schema] = lambda index: {},
    refer: Callable[[int], str] = lambda index: f"#/$defs/d{index}",
    **root: Any,
) -> Schema:
    """Definitions, each of which refers to the next one."""
    definitions = {
        f"d{index}": {**name(index), **(link(refer(index + 1)) if index + 1 < length else {})}
        for index in range(length)
    }
    container = "definitions" if "$schema" in root else "$defs"
    return prop({"$ref": refer(0)}, **{container: definitions}, **root)


def twice(reference: str) -> Schema:
    return {"anyOf": [{"$ref": reference}, {"$ref": reference}]}


DRAFT_7 = "http://json-schema.org/draft-07/schema#"
TREE = {"type": "object", "properties": {"a": {"$ref": "#/$defs/t"}}, "required": ["a"]}

REFUSED: dict[str, Callable[[], Schema]] = {
    "500 levels of properties": lambda: nested(500, lambda s: prop(s)),
    "500 levels of unions": lambda: nested(500, lambda s: {"anyOf": [s]}),
    "100,000 levels": lambda: nested(100_000, lambda s: {"items": s}),
    "2^30 by references": lambda: chain(30, twice),
    "2^30 by properties": lambda: chain(
        30, lambda ref: {"properties": {"x": {"$ref": ref}, "y": {"$ref": ref}}}
    ),
    "2^30 by addresses": lambda: chain(
        30,
        twice,
        name=lambda index: {"$id": f"urn:x:d{index}"},
        refer=lambda index: f"urn:x:d{index}",
    ),
    "2^30 by anchors": lambda: chain(
        30,
        twice,
        name=lambda index: {"$anchor": f"d{index}"},
        refer=lambda index: f"#d{index}",
    ),
    "2^30 by the anchors of draft 7": lambda: chain(
        30,
        twice,
        name=lambda index: {"$id": f"#d{index}"},
        refer=lambda index: f"#d{index}",
        **{"$schema": DRAFT_7},
    ),
    "2^30 by another spelling": lambda: chain(30, twice, refer=lambda i: f"#/%24defs/d{i}"),
    "2^30 by another spelling of the address": lambda: chain(
        30,
        twice,
        refer=lambda index: f"http://X.test:80/a/./b#/$defs/d{index}",
        **{"$id": "http://x.test/a/b"},
    ),
    "2^30 by the validator's own address": lambda: chain(
        30, twice, refer=lambda index: f"json-schema:///#/$defs/d{index}"
    ),
    "a chain of 200,000": lambda: chain(200_000, lambda ref: {"$ref": ref}),
    "60 levels of unevaluated properties": lambda: nested(
        60, lambda s: {"allOf": [s], "unevaluatedProperties": False}
    ),
    "a pattern of a million": lambda: prop({"pattern": "(a{1000}){1000}"}),
    "a pattern of 5,000 groups": lambda: prop({"pattern": "(" * 5000 + "a" + ")" * 5000}),
    "a pattern that looks ahead": lambda: prop({"pattern": "(?=a)a"}),
    "a pattern that refers back": lambda: prop({"pattern": r"(a)\1"}),
    "an address that is none": lambda: {**prop({"$ref": "x"}), "$id": "http://["},
    "half of a surrogate pair": lambda: {"type": "object", "properties": {"\ud800": {}}},
    "a number for a reference": lambda: prop({"$ref": 5}),
}

TAKEN: dict[str, Callable[[], Schema]] = {
    "a pattern that backtracks": lambda: prop({"pattern": "^(a+)+$"}),
    "names that backtrack": lambda: {"type": "object", "patternProperties": {"^(a+)+$": {}}},
    "a pattern of 50,000": lambda: prop({"pattern": "^(?:a?){50000}$"}),
    "a pattern of 10,000 letters": lambda: prop({"pattern": r"\w{10000}"}),
    "one megabyte": lambda: {**prop({"type": "string"}), "description": "x" * 1_000_000},
    "an enum of 100,000": lambda: prop({"enum": [f"value {n}" for n in range(100_000)]}),
    "5,000 properties": lambda: {
        "type": "object",
        "properties": {f"p{n}": {"type": "string"} for n in range(5000)},
    },
    "a reference to itself": lambda: prop({"$ref": "#/properties/a"}),
    "a root that is itself": lambda: {"type": "object", "$ref": "#"},
    "two that refer to each other": lambda: prop(
        {"$ref": "#/$defs/x"}, **{"$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/x"}}}
    ),
    "a dynamic reference to itself": lambda: {
        "type": "object",
        "$dynamicAnchor": "n",
        "$dynamicRef": "#n",
    },
    "an allOf of itself": lambda: prop(
        {"$ref": "#/$defs/x"}, **{"$defs": {"x": {"allOf": [{"$ref": "#/$defs/x"}]}}}
    ),
    "2 ways for each level": lambda: prop(
        {"$ref": "#/$defs/t"}, **{"$defs": {"t": {"anyOf": [TREE] * 2}}}
    ),
    "40 ways for each level": lambda: prop(
        {"$ref": "#/$defs/t"}, **{"$defs": {"t": {"anyOf": [TREE] * 40}}}
    ),
    "2^14 for each entry": lambda: (
        chain(14, twice) | {"properties": {"a": {"items": twice("#/$defs/d0")}}}
    ),
    "8 levels of unevaluated properties": lambda: nested(
        8, lambda s: {"allOf": [s], "unevaluatedProperties": False}
    ),
    "a multiple of almost nothing": lambda: prop({"multipleOf": 1e-300}),
    "numbers of 4,000 digits": lambda: prop({"minimum": 10**4000}),
}


LONG = {
    "a chain of 200,000",
    "a pattern of 50,000",
    "an enum of 100,000",
    "5,000 properties",
    "2^14 for each entry",
}
"""What takes a fifth of a second and more."""


def cases(schemas: dict[str, Callable[[], Schema]]) -> list[Any]:
    return [pytest.param(w, marks=pytest.mark.slow) if w in LONG else w for w in schemas]


def deep(levels: int) -> Any:
    value: Any = "end"
    for _ in range(levels):
        value = {"a": value}
    return value


ARGUMENTS: list[Any] = [
    {"a": "a" * 40 + "!"},
    {"a": "a" * 20_000 + "!"},
    {"a" * 20_000 + "!": 1},
    {"a": list(range(3000))},
    {"a": 10**4000},
    {"a": None},
    {"a": "null"},
    deep(30),
    deep(180),
    deep(190),
]


def parse(tool: DynamicTool, arguments: str) -> None:
    toolset = Toolset.of("Hostile", [tool])
    told = ""
    try:
        toolset.parse(ToolMetadata("c1", tool.name, arguments))
    except (InvalidArgumentsError, MalformedArgumentsError) as refused:
        told = refused.detail
    assert len(told) < 6000


@pytest.mark.parametrize("what", cases(REFUSED))
def test_what_could_harm_is_refused_as_it_is_declared(what: str) -> None:
    schema = REFUSED[what]()
    with ended_if_endless(), pytest.raises(DeclarationError):
        DynamicTool("hostile", "A tool.", schema)


def test_the_same_goes_for_schemas_of_results_and_answers() -> None:
    schema = REFUSED["2^30 by references"]()
    with pytest.raises(DeclarationError, match="'hostile' can't be used: its schema costs too"):
        OutputSchema("hostile", schema)
    with pytest.raises(DeclarationError, match="its output_schema costs too much"):
        DynamicTool("hostile", "A tool.", {}, output_schema=schema)


@pytest.mark.parametrize("what", cases(TAKEN))
def test_what_is_only_strange_is_taken_and_costs_nobody_anything(what: str) -> None:
    with ended_if_endless():
        tool = DynamicTool("hostile", "A tool.", TAKEN[what]())
        for arguments in ARGUMENTS:
            parse(tool, json.dumps(arguments))
        offer = Toolset.of("Hostile", [tool]).offer()
        for adapter in ADAPTERS:
            for strict in (False, True):
                adapter.tools(offer, strict=strict)


def test_what_it_takes_to_check_a_value_is_counted_with_names_and_branches() -> None:
    """Of a schema that leads back to itself in two ways, since that may take very long."""
    branch = {"allOf": [{"type": "object"}, {"minProperties": 1}], **TREE}
    tree = {"anyOf": [branch, branch, {"type": "string"}], "propertyNames": {"maxLength": 3}}
    schema = prop({"$ref": "#/$defs/t"}, **{"$defs": {"t": tree}})
    tool = DynamicTool("find", "Find.", schema)
    toolset = Toolset.of("Found", [tool])
    toolset.parse(ToolMetadata("c1", "find", json.dumps({"a": {"a": "x"}})))
    wrong = {"a": {"a": {"too_long": "x", "also_long": "x"}}}
    with pytest.raises(InvalidArgumentsError, match="too_long"):
        toolset.parse(ToolMetadata("c1", "find", json.dumps(wrong)))
    parse(tool, json.dumps({"a": {f"n{number}": deep(5) for number in range(400)}}))


def test_a_schema_that_leads_back_in_two_ways_takes_values_of_usual_depth() -> None:
    expression = {
        "anyOf": [
            {
                "type": "object",
                "properties": {"op": {"const": op}, "of": {"items": {"$ref": "#/$defs/e"}}},
                "required": ["op", "of"],
                "additionalProperties": False,
            }
            for op in ("and", "or", "not", "any", "all")
        ]
        + [{"type": "string"}]
    }
    tool = DynamicTool("find", "Find.", prop({"$ref": "#/$defs/e"}, **{"$defs": {"e": expression}}))
    toolset = Toolset.of("Find", [tool])
    value: Any = "leaf"
    for level in range(7):
        value = {"op": ("all", "any", "and")[level % 3], "of": [value, "leaf"]}
    toolset.parse(ToolMetadata("c1", "find", json.dumps({"a": value})))
    with pytest.raises(InvalidArgumentsError, match=r"a\.of"):
        toolset.parse(ToolMetadata("c1", "find", '{"a": {"op": "all", "of": [{"op": "any"}]}}'))


# --- nothing is fetched ---------------------------------------------------------------------------


@contextmanager
def counting_server() -> Iterator[tuple[str, list[bytes]]]:
    """The address of a server, and what came to it."""
    came: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(1)
                    came.append(connection.recv(1000))
                    connection.sendall(
                        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ntrue"
                    )

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{port}", came
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def referring(uri: str) -> list[Schema]:
    """Schemas that refer to `uri`, each in another place."""
    return [
        prop({"$ref": uri}),
        {"type": "object", "$ref": uri},
        prop({"$ref": f"{uri}#/definitions/a"}),
        prop({"$ref": "s.json"}, **{"$id": f"{uri}/"}),
        prop({"$ref": "other.json"}, **{"$id": uri}),
        prop({"$dynamicRef": f"{uri}#a"}),
        prop({}, **{"$schema": uri}),
        prop({"$schema": uri, "$id": f"{uri}/own", "type": "string"}),
        prop({"$ref": uri}, **{"$schema": DRAFT_7}),
        prop({}, **{"$defs": {"a": {"$ref": uri}}}),
        prop({"not": {"anyOf": [{"items": {"$ref": uri}}]}}),
        {"type": "object", "patternProperties": {"a": {"$ref": uri}}},
        {"type": "object", "unevaluatedProperties": {"$ref": uri}},
        prop({"contentSchema": {"$ref": uri}}),
    ]


def test_nothing_is_fetched_whatever_a_schema_refers_to_Y3() -> None:
    taken: list[Schema] = []
    with counting_server() as (address, came):
        for uri in (f"{address}/s.json", "file:///etc/hostname", "ftp://127.0.0.1/s.json"):
            for schema in referring(uri):
                for settings_ in ({"schema": schema}, {"schema": {}, "output_schema": schema}):
                    try:
                        DynamicTool("stranger", "A tool.", **settings_)
                        taken.append(schema)
                    except DeclarationError:
                        continue
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))).close()
        deadline = time.monotonic() + 5
        while not came and time.monotonic() < deadline:
            time.sleep(0.01)
    assert came == [b""]  # ours alone
    # The draft of an inner part is taken for that of the whole.
    assert all("/own" in str(schema) for schema in taken)


def test_the_reference_is_named_in_the_refusal_Y3() -> None:
    with pytest.raises(DeclarationError, match=r"'http://127\.0\.0\.1:9/s\.json'.*nothing was fet"):
        DynamicTool("stranger", "A tool.", prop({"$ref": "http://127.0.0.1:9/s.json"}))


# --- anything at all ------------------------------------------------------------------------------

WORDS = [
    "type", "properties", "items", "anyOf", "allOf", "$ref", "$defs", "$id", "$schema", "required",
    "additionalProperties", "pattern", "enum", "const", "minimum", "not", "a", "#", "#/$defs/a",
    "object", "string", "array", "integer", "$dynamicRef", "$anchor", "if", "then", "format",
    "unevaluatedProperties", "prefixItems", "draft-07", "http://127.0.0.1:9/", "^(a+)+$", "date",
]  # fmt: skip
TEXTS = st.sampled_from(WORDS) | st.text(max_size=4)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=15,
)


@pytest.mark.pure
@pytest.mark.slow
@given(
    st.dictionaries(TEXTS, ANY_JSON, max_size=5),
    st.lists(ANY_JSON.map(json.dumps) | st.text(max_size=10), max_size=4),
)
@settings(max_examples=examples(400), deadline=None)
def test_any_json_is_declared_or_refused_and_any_text_is_read_or_refused(
    schema: Schema, texts: list[str]
) -> None:
    for whole in (schema, {"type": "object", "properties": schema}):
        try:
            tool = DynamicTool("any", "A tool.", whole)
        except DeclarationError:
            continue
        toolset = Toolset.of("Any", [tool])
        assert tool.definition.input_schema["type"] == "object"
        for text in texts:
            try:
                call = toolset.parse(ToolMetadata("c1", "any", text))
            except (InvalidArgumentsError, MalformedArgumentsError, UnknownToolError):
                continue
            assert isinstance(call.arguments, dict)


@pytest.mark.parametrize(
    "name", ["self", "class", "model_config", "user-id", "a" * 65, "a.b", "values", "", "ä", "$ref"]
)
def test_a_parameter_may_have_any_name(name: str) -> None:
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"}},
        "required": [name],
        "additionalProperties": False,
    }
    toolset = Toolset.of("Named", [DynamicTool("named", "A tool.", schema)])
    call = toolset.parse(ToolMetadata("c1", "named", json.dumps({name: 1})))
    assert (call.arguments, dict(call.input.values)) == ({name: 1}, {name: 1})
    with pytest.raises(InvalidArgumentsError, match="Field required"):
        toolset.parse(ToolMetadata("c1", "named", "{}"))


@pytest.mark.parametrize("schema", [{"type": "integer"}, {"pattern": "^a$"}])
def test_a_text_with_half_a_character_is_a_misfit_and_no_error(schema: Any) -> None:
    answer = {"action": "accept", "content": {"a": "\ud800"}}
    assert find_misfit(prop(schema), answer) == "a text in them holds half a character"
