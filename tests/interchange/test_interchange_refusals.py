"""What can't be a transcript is refused with every place named, and nothing is made (rule K5)."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from lutumpy import Session, Transcript, TranscriptError

Json = Any
USER = {"role": "user", "content": "Go"}


def calling(*ids: str) -> Json:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ids
        ],
    }


def tool(call_id: Json) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": "1"}


def using(*ids: Json) -> Json:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": i, "name": "f", "input": {}} for i in ids],
    }


def results(*ids: Json) -> Json:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": i, "content": "1"} for i in ids],
    }


def call(call_id: str) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}


def output(call_id: Json) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": "1"}


CASES: list[tuple[str, list[Json], list[str]]] = [
    ("openai_chat", [USER, calling("a", "b"), tool("a"), USER], ["messages[1]: call 'b' of 'f' has no result"]),
    ("openai_chat", [USER, calling("a")], ["messages[1]: call 'a'"]),
    ("openai_chat", [USER, tool("a")], ["messages[1]: the result of 'a' follows no message with calls"]),
    ("openai_chat", [USER, calling("a"), tool("a"), USER, tool("a")], ["messages[4]: the result of 'a' follows no"]),
    ("openai_chat", [USER, calling("a"), tool("a"), tool("a")], ["messages[3]: the result is the second one for 'a'"]),
    ("openai_chat", [USER, calling("a"), tool("x"), tool(None)], ["messages[2]: the result is of no call", "messages[3]", "messages[1]"]),
    ("openai_chat", [{"role": "sage", "content": "x"}, {"content": "y"}], ["messages[0]: the role 'sage'", "messages[1]: the role None"]),
    ("openai_responses", [USER, call("a")], ["call 'a' of 'f' has no output"]),
    ("openai_responses", [USER, output("a")], ["input[1]: the output 'a' has no call before it"]),
    ("openai_responses", [output("a"), call("a")], ["input[0]: the output 'a'", "call 'a' of 'f' has no output"]),
    ("openai_responses", [call("a"), {**output("a"), "type": "custom_tool_call_output"}], ["input[1]", "call 'a'"]),
    ("openai_responses", [{"role": "tool", "content": "x"}, {"x": 1}], ["input[0]: the role 'tool'", "input[1]: it has neither"]),
    ("anthropic_messages", [USER, using("a", "b"), results("a")], ["messages.1: call 'b' of 'f' has no result"]),
    ("anthropic_messages", [USER, using("a")], ["messages.1: call 'a'"]),
    ("anthropic_messages", [USER, using("a"), {"role": "assistant", "content": "x"}, USER], ["messages.1: call 'a'"]),
    ("anthropic_messages", [USER, using("a"), {"role": "system", "content": "x"}, results("a")], ["messages.1", "messages.3"]),
    ("anthropic_messages", [USER, results("a")], ["messages.1: the result is of no call"]),
    ("anthropic_messages", [USER, using("a"), results("a", "a")], ["messages.2: the result is the second one for 'a'"]),
    ("anthropic_messages", [USER, using("a"), USER, results("a")], ["messages.3: the result of 'a' stands after other"]),
    ("anthropic_messages", [USER, using(None), results(None)], ["messages.2: the result is of no call", "messages.1: call ''"]),
    ("anthropic_messages", [{"role": "tool", "content": "x"}], ["messages.0: the role 'tool'"]),
]  # fmt: skip


@pytest.mark.parametrize(("api", "history", "said"), CASES)
def test_every_place_is_named_and_the_way_out_K5(
    api: str, history: list[Json], said: list[str]
) -> None:
    with pytest.raises(TranscriptError) as caught:
        Transcript.from_messages(api, history)  # type: ignore[arg-type]
    message = str(caught.value)
    for part in said:
        assert f"\n- {part}" in message or f"input: {part}" in message
    assert message.count("\n- ") == len(said)
    assert "propose_repairs" in message
    assert caught.value.problems
    assert all(problem.certainty == "refused" for problem in caught.value.problems)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.problems) == (message, caught.value.problems)


@pytest.mark.parametrize("api", ["openai_chat", "openai_responses", "anthropic_messages"])
@pytest.mark.parametrize(
    ("history", "said"),
    [
        (None, "not NoneType"),
        ({"role": "user"}, "not dict"),
        (b"[]", "not bytes"),
        (["x"], "not a JSON object but str"),
        ([USER, {"role": "user", "content": float("nan")}], "is not JSON"),
        ([{"role": "user", "content": object()}], "object is not a JSON value"),
        ([{"role": "user", "content": {1, 2}}], "set is not a JSON value"),
        ([{"role": "user", "content": 10**5000}], "is not JSON"),
    ],
)
def test_what_is_no_json_is_refused(api: str, history: Json, said: str) -> None:
    with pytest.raises(TranscriptError, match=said):
        Transcript.from_messages(api, history)  # type: ignore[arg-type]


@pytest.mark.parametrize("depth", [250, 100_000])
def test_what_is_nested_too_deeply_is_refused(depth: int) -> None:
    value: Json = "x"
    for _ in range(depth):
        value = [value]
    with pytest.raises(TranscriptError, match="is not JSON"):
        Transcript.from_messages("openai_chat", [{"role": "user", "content": value}])


def test_brackets_in_a_text_are_no_nesting() -> None:
    history = [{"role": "user", "content": '[{"\\' * 300}]
    assert len(Transcript.from_messages("openai_chat", history)) == 1


@pytest.mark.parametrize(
    ("api", "system"),
    [
        ("openai_chat", ["x"]),
        ("openai_chat", ""),
        ("openai_responses", ["x"]),
        ("anthropic_messages", {"x": 1}),
    ],
)
def test_a_system_of_another_kind_is_refused(api: str, system: Json) -> None:
    with pytest.raises(TranscriptError):
        Transcript.from_messages(api, [USER], system=system)  # type: ignore[arg-type]


def test_an_unknown_api_is_refused() -> None:
    with pytest.raises(
        TranscriptError,
        match="'gopher' is none of openai_chat, openai_responses, anthropic_messages",
    ):
        Transcript.from_messages("gopher", [USER])  # type: ignore[arg-type]


def test_lone_surrogates_are_replaced_as_everywhere() -> None:
    transcript = Transcript.from_messages("openai_chat", [{"role": "user", "content": "a\ud800b"}])
    assert transcript[0].parts[0].text == "a\ufffdb"  # type: ignore[union-attr]


def test_outputs_whose_calls_the_server_holds_need_to_be_told_of() -> None:
    """An input of nothing but outputs can only go on with what the server holds; any other has to
    say so.
    """
    mixed = [output("a"), USER]
    with pytest.raises(TranscriptError, match="'a' has no call"):
        Transcript.from_messages("openai_responses", mixed)
    with pytest.raises(TranscriptError, match="'a' has no call"):
        Transcript.from_messages("openai_responses", [output("a")], server_held_prefix=False)
    assert len(Transcript.from_messages("openai_responses", mixed, server_held_prefix=True)) == 3
    assert len(Transcript.from_messages("openai_responses", [output("a"), output("b")])) == 2
    # A reference to an item of the server's may be to a call.
    assert (
        len(
            Transcript.from_messages(
                "openai_responses", [{"type": "item_reference", "id": "fc_1"}, output("a")]
            )
        )
        == 3
    )


def test_dumps_of_the_first_version_load_and_broken_ones_do_not_R4() -> None:
    session = Session(Transcript.from_messages("openai_chat", [USER, calling("a"), tool("a")]))
    data = session.dump()
    assert data["version"] == 4
    old = {
        **data,
        "version": 1,
        "items": [{k: v for k, v in item.items() if k != "verbatim"} for item in data["items"]],
    }
    assert [type(item) for item in Session.load(old).transcript] == [
        type(item) for item in session.transcript
    ]
    for broken in (
        {"api": 1, "entries": []},
        {"api": "x", "entries": [1]},
        {"api": "x", "entries": [], "system": True},
        [],
    ):
        items = [{**data["items"][0], "verbatim": broken}]
        with pytest.raises(TranscriptError, match=r"items\[0\]"):
            Session.load({**data, "items": items})
    with pytest.raises(TranscriptError, match="this release reads 1 and 2 and 3 and 4"):
        Session.load({**data, "version": 5})


@pytest.mark.parametrize("api", ["anthropic_messages", "bedrock_converse"])
def test_calls_without_a_result_are_named_in_their_order(api: str) -> None:
    ids = [f"call{number}" for number in (7, 3, 9, 1, 5, 8, 2, 6, 4)]
    if api == "anthropic_messages":
        history = [USER, using(*ids), results(ids[4])]
    else:
        uses = [{"toolUse": {"toolUseId": one, "name": "f", "input": {}}} for one in ids]
        result = {"toolResult": {"toolUseId": ids[4], "content": [{"text": "1"}]}}
        history = [
            {"role": "user", "content": [{"text": "Go"}]},
            {"role": "assistant", "content": uses},
            {"role": "user", "content": [result]},
        ]
    with pytest.raises(TranscriptError) as raised:
        Transcript.from_messages(api, history)
    text = str(raised.value)
    named = [one for one in ids if one != ids[4]]
    assert sorted(named, key=lambda one: text.index(f"call '{one}'")) == named
