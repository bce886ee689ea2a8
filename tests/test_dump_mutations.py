"""What `load` takes can be sent (rules K5 and R4): dumps of sessions of every API, with every kind
of item, each spoilt in one place. A spoilt dump is either refused, or gives a session whose
requests every API takes, by the rules of this library.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from every_api import ADAPTERS as APIS
from every_api import messages_of
from profiles import examples
from toolkit import LookTools as Tools

from lutumpy import (
    FilePart,
    ImagePart,
    NeedsTools,
    Session,
    TextPart,
    Transcript,
    TranscriptError,
)
from lutumpy.doctor import check_messages

PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(40)


def chat(message: dict[str, Any], finish: str = "tool_calls") -> dict[str, Any]:
    return {
        "id": "c",
        "choices": [{"finish_reason": finish, "message": {"role": "assistant", **message}}],
    }


def function(call_id: str, arguments: str = '{"n": 1}') -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}}


def item(kind: str, n: int, **fields: Any) -> dict[str, Any]:
    prefix = {
        "function_call": "fc",
        "custom_tool_call": "ctc",
        "message": "msg",
        "reasoning": "rs",
    }[kind]
    return {"type": kind, "id": f"{prefix}_{n}", **fields}


def said(n: int, text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return item("message", n, role="assistant", status="completed", content=content)


def thinking(n: int) -> dict[str, Any]:
    return {"type": "thinking", "thinking": f"hm {n}", "signature": f"sig{n}"}


def contents(parts: list[dict[str, Any]]) -> dict[str, Any]:
    content = {"role": "model", "parts": parts}
    return {"responseId": "r", "candidates": [{"finishReason": "STOP", "content": content}]}


def converse(stop: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"stopReason": stop, "output": {"message": {"role": "assistant", "content": content}}}


def chunk(message: dict[str, Any]) -> dict[str, Any]:
    return {"message": {"role": "assistant", **message}, "done": True, "done_reason": "stop"}


REPLIES: dict[str, list[dict[str, Any]]] = {
    "openai_chat": [
        chat({"content": "So.", "reasoning_content": "hm", "tool_calls": [function("call_a"), function("call_b", '{"n"')]}),
        chat({"content": None, "tool_calls": [function("call_c"), function("call_d", '{"n": "x"}')]}),
        chat({"content": None, "refusal": "I won't."}, "stop"),
    ],
    "openai_responses": [
        {"id": "r1", "status": "completed", "output": [
            item("reasoning", 1, summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="xyz"),
            item("function_call", 2, call_id="call_a", name="look", arguments='{"n": 1}'),
            item("custom_tool_call", 3, call_id="call_b", name="sql", input="select"),
        ]},
        {"id": "r2", "status": "completed", "output": [
            said(4, "So."), item("function_call", 5, call_id="call_c", name="look", arguments="{"),
        ]},
        {"id": "r3", "status": "completed", "output": [said(6, "Done.")]},
    ],
    "anthropic_messages": [
        {"id": "m1", "stop_reason": "tool_use", "container": {"id": "co"}, "content": [
            thinking(1), {"type": "text", "text": "So."},
            {"type": "tool_use", "id": "toolu_a", "name": "look", "input": {"n": 1}},
            {"type": "tool_use", "id": "toolu_b", "name": "look", "input": {"n": "x"}},
        ]},
        {"id": "m2", "stop_reason": "tool_use", "content": [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
            {"type": "tool_use", "id": "toolu_c", "name": "look", "input": {}},
        ]},
        {"id": "m3", "stop_reason": "end_turn", "content": [{"type": "text", "text": "Done."}]},
    ],
    "gemini_generate_content": [
        contents([
            {"text": "hm", "thought": True}, {"text": "So.", "thoughtSignature": "c2VhbDE="},
            {"functionCall": {"name": "look", "args": {"n": 1}}, "thoughtSignature": "c2VhbDI="},
            {"functionCall": {"name": "look", "args": {"n": "x"}}},
        ]),
        contents([
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            {"functionCall": {"id": "fc_a", "name": "look", "args": {"n": 2}}, "thoughtSignature": "c2VhbDM="},
        ]),
        contents([{"text": "Done.", "thoughtSignature": "c2VhbDQ="}]),
    ],
    "bedrock_converse": [
        converse("tool_use", [
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig1"}}}, {"text": "So."},
            {"toolUse": {"toolUseId": "tooluse_a", "name": "look", "input": {"n": 1}}},
            {"toolUse": {"toolUseId": "tooluse_b", "name": "look", "input": {"n": "x"}, "type": "tool_use"}},
        ]),
        converse("tool_use", [
            {"toolUse": {"toolUseId": "tooluse_s", "name": "nova_code_interpreter", "input": {}, "type": "server_tool_use"}},
            {"toolResult": {"toolUseId": "tooluse_s", "content": [{"text": "1"}], "type": "nova_code_interpreter_result"}},
            {"toolUse": {"toolUseId": "tooluse_c", "name": "look", "input": {}}},
        ]),
        converse("end_turn", [{"text": "Done."}]),
    ],
    "ollama_chat": [
        chunk({"content": "So.", "thinking": "hm", "tool_calls": [
            {"id": "call_a", "function": {"index": 0, "name": "look", "arguments": {"n": 1}}},
            {"function": {"index": 1, "name": "look", "arguments": {"n": "x"}}},
        ]}),
        chunk({"content": "", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]}),
        chunk({"content": "Done."}),
    ],
}  # fmt: skip


TAKES_PICTURES = ("anthropic_messages", "bedrock_converse", "gemini_generate_content")


def answer(session: Session, api: str, reply: dict[str, Any]) -> None:
    outcome = Tools.offer().read(APIS[api].response(reply), session)
    if isinstance(outcome, NeedsTools):
        round = outcome.round
        parts = [TextPart("seen"), ImagePart(data=PIXEL, media_type="image/png")]
        results = [
            call.complete("seen") if k % 2 else call.fail("broken")
            for k, call in enumerate(round.calls)
        ]
        if results and api in TAKES_PICTURES:
            results[0] = type(results[0])(results[0].metadata, tuple(parts), "ok")
        round.commit(session, results)


def committed(api: str) -> Session:
    session = Session()
    session.push_system("Be brief.")
    session.push_developer("In English.")
    session.push_user(
        ["look", ImagePart(url="https://x.test/a.png", detail="low"), ImagePart(PIXEL, "image/png")]
    )
    for reply in REPLIES[api]:
        answer(session, api, reply)
    session.push_user(["again", FilePart(b"%PDF-1.4", "application/pdf", filename="a.pdf")])
    session.push_ephemeral_system("It is late.")
    return session


def mixed() -> Session:
    """Turns of all APIs in one session."""
    session = Session()
    for api, replies in REPLIES.items():
        session.push_user(f"ask {api}")
        for reply in replies:
            answer(session, api, reply)
    session.push_assistant("Well,")
    session.push_user("go on")
    return session


def held() -> Session:
    """An ephemeral was sent, and reasoning is signed over it."""
    session = Session()
    session.push_user("look")
    session.push_ephemeral_user("Now.")
    answer(session, "anthropic_messages", REPLIES["anthropic_messages"][0])
    session.push_ephemeral_user("And now.")
    return session


def as_read(api: Any) -> Session:
    """A history that was read, and went on."""
    source = committed(api)
    body = APIS[api].request(source.transcript)
    system = body.get("systemInstruction", body.get("system"))
    session = Session(Transcript.from_messages(api, messages_of(api, body), system))
    answer(
        session,
        api,
        json.loads(json.dumps(REPLIES[api][0]).replace("_a", "_z").replace("_b", "_y")),
    )
    session.push_user("and?")
    return session


SESSIONS: dict[str, Session] = {
    **{api: committed(api) for api in APIS},
    **{f"read {api}": as_read(api) for api in APIS},
    "mixed": mixed(),
    "held": held(),
}


# --- mutations ------------------------------------------------------------------------------------

VALUES: list[Any] = [
    5,
    -1,
    0,
    True,
    False,
    None,
    "",
    " ",
    "x",
    "\ud800",
    "5",
    [],
    {},
    [5],
    {"a": 1},
    [[]],
    1.5,
]
WORDS = [
    "openai_chat", "openai_responses", "anthropic_messages", "gemini_generate_content", "bedrock_converse", "ollama_chat", "user", "assistant", "system", "developer", "tool",
    "message", "turn", "results", "text", "image", "file", "call", "reasoning", "refusal", "opaque", "function",
    "custom", "shell_call", "function_call", "toolset", "rejected", "error", "ok", "stop", "paused", "length",
    "call_a", "toolu_a", "call00001", "tool_use", "tool_result", "thinking", "id", "call_id", "tool_calls",
    "toolUse", "toolResult", "functionCall", "thoughtSignature", "server_tool_use",
]  # fmt: skip
Path = tuple[Any, ...]


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from paths(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(len(value)):
            yield from paths(value[index], (*path, index))


def mutations(dump: dict[str, Any]) -> Iterator[tuple[str, Path, Any]]:
    """Every change of one place."""
    for path in paths(dump):
        if path == ("refused",) or path[:1] == ("refused",):
            continue
        value = dump
        for key in path:
            value = value[key]
        for other in VALUES:
            if type(other) is not type(value) or other != value:
                yield "set", path, other
        if isinstance(value, str):
            for word in WORDS:
                yield "set", path, word
        yield "delete", path, None
        if isinstance(path[-1], int):
            yield "twice", path, None
            if path[-1]:
                yield "swap", path, None
        if isinstance(value, dict):
            yield "add", path, "unheard"


def mutated(dump: dict[str, Any], how: str, path: Path, other: Any) -> dict[str, Any]:
    changed = copy.deepcopy(dump)
    holder: Any = changed
    for key in path[:-1]:
        holder = holder[key]
    last = path[-1]
    if how == "set":
        holder[last] = other
    elif how == "delete":
        del holder[last]
    elif how == "twice":
        holder.insert(last, copy.deepcopy(holder[last]))
    elif how == "swap":
        holder[last - 1], holder[last] = holder[last], holder[last - 1]
    else:
        holder[last][other] = 1
    return changed


def assert_sendable(session: Session, known: list[list[str]]) -> None:
    """Every API can be sent the session, now and as it goes on."""
    for api, adapter in APIS.items():
        twin = session.fork()
        twin.push_user("go on")
        body = adapter.request(twin.transcript)
        json.dumps(body, allow_nan=False)
        entries = messages_of(api, body)
        refused = [
            p
            for p in check_messages(
                api, entries, system=body.get("systemInstruction", body.get("system"))
            )
            if p.certainty == "refused"
        ]  # type: ignore[arg-type]
        assert {p.rule for p in refused} <= {rule for name, rule in known if name == api}, refused[
            0
        ]
        answer(twin, api, REPLIES[api][0])
        twin.push_user("and now?")
        adapter.request(twin.transcript)
        adapter.request(twin.transcript.window(max_rounds=1))
        assert len(repr(twin.usage)) > 0
        Session.load(json.loads(json.dumps(twin.dump())))


def verdict(dump: dict[str, Any], how: str, path: Path, other: Any) -> bool:
    """Whether a spoilt dump was loaded; fails when what was loaded can't be sent."""
    try:
        loaded = Session.load(mutated(dump, how, path, other))
    except TranscriptError as error:
        assert "nothing was loaded" in str(error)  # noqa: PT017  # that it isn't raised is right, too
        return False
    try:
        assert_sendable(loaded, dump["refused"])
    except Exception as error:
        raise AssertionError(f"{how} {path} {other!r}: {type(error).__name__}: {error}") from error
    return True


@pytest.mark.slow
@pytest.mark.pure
@pytest.mark.parametrize("name", SESSIONS)
def test_every_session_is_loaded_as_it_was_R4(name: str) -> None:
    session = SESSIONS[name]
    dump = session.dump()
    for data in (dump, json.dumps(dump), json.dumps(dump).encode(), "\ufeff" + json.dumps(dump)):
        loaded = Session.load(data)
        assert loaded.dump() == dump
        assert_sendable(loaded, dump["refused"])
        for adapter in APIS.values():
            assert adapter.messages(loaded.transcript) == adapter.messages(session.transcript)


@pytest.mark.slow
@pytest.mark.pure
@pytest.mark.parametrize("name", SESSIONS)
def test_a_spoilt_dump_is_refused_or_can_be_sent_K5_R4(name: str) -> None:
    dump = SESSIONS[name].dump()
    everything = list(mutations(dump))
    chosen = random.Random(name).sample(everything, min(examples(100), len(everything)))
    loaded = [verdict(dump, *mutation) for mutation in chosen]
    assert 0 < sum(loaded) < len(loaded)
