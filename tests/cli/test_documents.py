"""Values of files as documents, and whose API they are for, against every recorded exchange."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutumpy import Session
from lutumpy.apis import api_names, serving
from lutumpy.cli.answers import api_of_answer
from lutumpy.cli.documents import Document, DocumentError, Place, open_document
from lutumpy.cli.recognition import apis_of_body, apis_of_messages
from lutumpy.testing import Reply, ScriptedModel

FIXTURES = Path(__file__).parent.parent / "fixtures"
FILES = {
    "anthropic_messages": "anthropic_messages",
    "openai_chat": "openai_chat",
    "openai_responses": "openai_responses",
    "compat_openai_chat": "openai_chat",
    "compat_openai_responses": "openai_responses",
}
APIS = api_names()
SIGNS = {api: serving(api, "rules").SIGNS for api in APIS}
OF_TEXTS = tuple([api for api in APIS if SIGNS[api].types_parts and not SIGNS[api].shares_layout])
"""The APIs in which a content may be a text, but for one that a plain text doesn't speak for."""
HERE = Place("file.json")


def recorded() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, api in FILES.items():
        for line in (FIXTURES / f"{name}.jsonl").read_text().splitlines():
            yield api, json.loads(line)
    for name in ("errors", "rejected"):
        for line in (FIXTURES / f"{name}.jsonl").read_text().splitlines():
            entry = json.loads(line)
            yield entry["api"], entry


RECORDED = list(recorded())


def test_every_recorded_request_is_recognised_by_its_body_alone() -> None:
    assert len(RECORDED) > 90
    wrong = [
        (api, apis_of_body(entry["request"]))
        for api, entry in RECORDED
        if apis_of_body(entry["request"]) != (api,)
    ]
    assert wrong == []


def test_recorded_messages_alone_are_never_taken_for_another_api() -> None:
    told = 0
    for api, entry in RECORDED:
        messages = entry["request"].get("messages") or entry["request"].get("input")
        if isinstance(messages, list):
            found = apis_of_messages(messages)
            assert api in found
            told += found == (api,)
    assert told > 30  # the others say nothing that only one API could


def test_recorded_answers_are_never_taken_for_those_of_another_api() -> None:
    found = [(api, api_of_answer(entry["response"])) for api, entry in RECORDED]
    assert [pair for pair in found if pair[1] not in (pair[0], None)] == []
    unknown = [entry for api, entry in RECORDED if api_of_answer(entry["response"]) is None]
    assert [
        entry for entry in unknown if entry["status"] < 400
    ] == []  # errors look the same on both OpenAI APIs


@pytest.mark.parametrize(("api", "name"), [(api, name) for name, api in FILES.items()])
def test_recorded_streams_are_recognised_as_answers(api: str, name: str) -> None:
    for line in (FIXTURES / f"{name}_sse.jsonl").read_text().splitlines():
        assert api_of_answer(json.loads(line)["response"]) == api


def test_exchanges_open_with_request_answer_and_status() -> None:
    for api, entry in RECORDED:
        without = {key: value for key, value in entry.items() if key != "api"}
        document = open_document(without, HERE)
        assert (document.kind, document.api, document.status) == ("exchange", api, entry["status"])
        assert document.body == entry["request"]
        assert document.answer == entry["response"]
        assert document.compatible == (entry["host"] not in ("api.openai.com", "api.anthropic.com"))


SIMPLE = [{"role": "user", "content": "Hello."}]


@pytest.mark.parametrize(
    ("value", "kind", "api"),
    [
        ({"model": "m", "messages": SIMPLE}, "request", "openai_chat"),
        (
            {"model": "claude-x", "max_tokens": 5, "messages": SIMPLE},
            "request",
            "anthropic_messages",
        ),
        ({"model": "gpt-x", "max_tokens": 5, "messages": SIMPLE}, "request", "openai_chat"),
        (
            {"model": "m", "max_tokens": 5, "system": "s", "messages": SIMPLE},
            "request",
            "anthropic_messages",
        ),
        ({"model": "m", "input": "Hello."}, "request", "openai_responses"),
        ({"model": "m", "previous_response_id": "r"}, "request", "openai_responses"),
        ({"input": SIMPLE}, "messages", "openai_responses"),
        ({"messages": [{"role": "system", "content": "s"}, *SIMPLE]}, "messages", "openai_chat"),
        ([*SIMPLE, {"role": "assistant", "tool_calls": []}], "messages", "openai_chat"),
        ([*SIMPLE, {"type": "function_call", "call_id": "c"}], "messages", "openai_responses"),
        (
            [{"role": "user", "content": [{"type": "tool_result"}]}],
            "messages",
            "anthropic_messages",
        ),
        ([{"role": "user", "content": [{"type": "input_text"}]}], "messages", "openai_responses"),
    ],
)
def test_shapes_say_what_they_are(value: Any, kind: str, api: str) -> None:
    document = open_document(value, HERE)
    assert (document.kind, document.api) == (kind, api)


@pytest.mark.parametrize(
    ("value", "apis"),
    [
        (SIMPLE, OF_TEXTS),
        ([{"role": "system", "content": "s"}, *SIMPLE], ("openai_chat", "openai_responses")),
        ({"messages": SIMPLE}, ("openai_chat", "anthropic_messages")),
        (
            {"model": "m", "max_tokens": 5, "messages": SIMPLE},
            ("openai_chat", "anthropic_messages"),
        ),
    ],
)
def test_what_fits_several_apis_is_asked_for_and_taken_from_the_user(
    value: Any, apis: tuple[str, ...]
) -> None:
    with pytest.raises(DocumentError, match="--api") as caught:
        open_document(value, HERE)
    assert [api for api in APIS if api in str(caught.value)] == list(apis)
    for api in apis:
        chosen: Any = api
        assert open_document(value, HERE, chosen).api == api


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        5,
        "text",
        [],
        [1],
        [{"a": 1}],
        {},
        {"a": 1},
        {"messages": 5},
        {"model": "m"},
        {"choices": []},
        {"type": "message", "role": "assistant", "stop_reason": "end_turn", "usage": {}},
        {"request": {}},
        {"request": {"a": 1}, "response": {}},
        {"format": "lutumpy.session"},
        {"format": "lutumpy.session", "version": 1, "items": 5},
    ],
)
def test_other_values_are_no_documents(value: Any) -> None:
    with pytest.raises(DocumentError):
        open_document(value, HERE)


leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8))
keys = st.sampled_from(
    "model messages input role content type tools tool_calls request response api status format "
    "version items system "
    "max_tokens text tool_use function_call call_id tool_choice instructions decisions".split()
)
odd = st.recursive(
    st.one_of(
        leaves, st.sampled_from(["user", "assistant", "tool_use", "lutumpy.session", "openai_chat"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=5)),
    max_leaves=20,
)


@given(odd, st.sampled_from([None, *APIS]))
def test_no_json_makes_opening_raise_anything_else(value: Any, api: Any) -> None:
    with contextlib.suppress(DocumentError):
        document = open_document(value, HERE, api)
        assert document.api in APIS
        assert isinstance(document.messages, list)


async def session_with_a_round(api: Any) -> Session:
    session = Session()
    session.push_system("Be kind.")
    session.push_user("Look.")
    llm = ScriptedModel([Reply(text="I see.")], api=api)
    await session.text_turn(llm).collect()
    return session


@pytest.mark.parametrize("api", APIS)
async def test_a_dump_opens_as_the_request_of_the_api_that_answered(api: Any) -> None:
    dump = (await session_with_a_round(api)).dump()
    document = open_document(json.loads(json.dumps(dump)), HERE)
    assert (document.kind, document.api) == ("session", api)
    assert document.messages[-1]["role"] in ("assistant", "model")
    assert open_document(dump, HERE, "openai_chat").api == "openai_chat"


async def test_decisions_beside_a_dump_are_kept() -> None:
    dump = (await session_with_a_round("openai_chat")).dump()
    decisions = [{"call_id": "c", "tool": "t", "decision": "rejected"}]
    assert open_document({**dump, "decisions": [*decisions, 5]}, HERE).decisions == tuple(decisions)


@pytest.mark.parametrize(
    "value", [SIMPLE, {"model": "m", "messages": SIMPLE}, {"request": {"messages": SIMPLE}, "x": 1}]
)
def test_other_messages_take_the_place_of_the_old_ones_and_nothing_else_changes(value: Any) -> None:
    document = open_document(value, HERE, "openai_chat")
    changed = document.with_messages([{"role": "user", "content": "Other."}])
    assert json.dumps(changed.raw) == json.dumps(value).replace("Hello.", "Other.")
    assert changed.messages == [{"role": "user", "content": "Other."}]
    assert document.messages == SIMPLE


def test_a_text_as_input_is_one_message() -> None:
    document = open_document({"model": "m", "input": "Hello."}, HERE)
    assert isinstance(document, Document)
    assert document.messages == SIMPLE
