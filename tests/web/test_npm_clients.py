"""Streams read by npm's own clients, `ai` and `@ag-ui/client`: the session `web_npm` of nox."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from profiles import examples
from test_ag_ui import messages_of
from test_ag_ui import sent as sent_ag_ui
from test_ai_sdk import DECISIONS, SHOWS, delta, message_of, sent, some_pieces
from test_starlette import serving
from web_toolkit import FULL, PLAIN, SCOPE, run_log

from lutumpy.durable import StoredEvent
from lutumpy.web import AGUIStream, AISDKStream, Show
from lutumpy.web.frames import encode_data

FOLDER = os.environ.get("LUTUMPY_NPM_WEB", "")
pytestmark = pytest.mark.skipif(not FOLDER, reason="LUTUMPY_NPM_WEB names no npm folder")

USER = {"id": "m0", "role": "user", "content": "Please do it."}


def read_all(cases: Sequence[Any]) -> Any:
    script = Path(FOLDER) / "read_streams.mjs"
    shutil.copy(Path(__file__).parent / "npm" / "read_streams.mjs", script)
    node = os.environ.get("LUTUMPY_NODE") or "node"
    ran = subprocess.run(
        [node, str(script)], input=json.dumps(cases).encode(), capture_output=True, check=False
    )
    assert ran.returncode == 0, ran.stderr.decode()[-3000:]
    return json.loads(ran.stdout)


def chat(data: bytes, message: Any = None, sdk: int = 7) -> dict[str, Any]:
    encoded = base64.b64encode(data).decode()
    return {"kind": "chat", "data": encoded, "message": message, "sdk": sdk}


def run(data: bytes, messages: Any = (USER,), run_id: str = "r") -> dict[str, Any]:
    encoded = base64.b64encode(data).decode()
    return {"kind": "run", "data": encoded, "messages": list(messages), "runId": run_id,
            "threadId": SCOPE}  # fmt: skip


def logs() -> list[list[StoredEvent]]:
    """Logs with every decision, and one with an answer that was lost."""
    found = [run_log(FULL, decision) for decision in DECISIONS]
    plain = run_log(PLAIN)
    lost = [delta("Something ", plain[0].at), delta("else", plain[0].at)]
    return [*found, plain, [*plain[:2], *lost, *plain[2:]]]


def same(value: Any) -> Any:
    """A value as JSON: without what is undefined there."""
    return json.loads(json.dumps(value))


def test_the_ai_sdk_has_what_the_log_says_whatever_pieces_it_saw_W4_W23() -> None:
    source = random.Random(2)
    cases: list[Any] = []
    expected: list[Any] = []
    for log in logs():
        for show in SHOWS:
            for _ in range(5):
                stream = AISDKStream(SCOPE, show=show, after=-1)
                cases.append(chat(sent(stream, some_pieces(log, source))))
                expected.append(message_of(log, show))
    for result, message in zip(read_all(cases), expected, strict=True):
        assert result["errors"] == []
        assert same(result["message"]) == same({**message})


def test_version_6_of_the_ai_sdk_takes_every_stream_and_ends_alike_W10_W23() -> None:
    for decision in DECISIONS:
        log = run_log(FULL, decision)
        (waits,) = [stored.seq for stored in log if stored.event["event"] == "RunWaits"]
        begun = [each for each in log if each.seq <= waits]
        (first,) = read_all([chat(sent(AISDKStream(SCOPE, sdk=6), begun), sdk=6)])
        cases = [
            chat(sent(AISDKStream(SCOPE, sdk=6), log), sdk=6),
            chat(sent(AISDKStream(SCOPE, sdk=6, after=waits), log), first["message"], sdk=6),
        ]
        for result in [first, *read_all(cases if decision else cases[:1])]:
            assert result["errors"] == []
            is_over = result is not first and decision is not None
            events = log if is_over else begun
            for part, whole in zip(
                same(result["message"])["parts"], message_of(events, Show())["parts"], strict=True
            ):
                assert (part["type"], part.get("output")) == (whole["type"], whole.get("output"))
                assert not is_over or part.get("state") == whole.get("state")


def test_the_ai_sdk_goes_on_behind_a_question_W8_W11() -> None:
    for decision in DECISIONS[1:]:
        log = run_log(FULL, decision)
        (waits,) = [stored.seq for stored in log if stored.event["event"] == "RunWaits"]
        begun = [each for each in log if each.seq <= waits]
        (first,) = read_all([chat(sent(AISDKStream(SCOPE), begun))])
        data = sent(AISDKStream(SCOPE, after=waits), log)
        (second,) = read_all([chat(data, first["message"])])
        assert second["errors"] == []
        assert same(second["message"]) == same(message_of(log, Show()))


def test_ag_ui_has_what_the_log_says_whatever_pieces_it_saw_W4_W9_W23() -> None:
    source = random.Random(3)
    cases: list[Any] = []
    expected: list[Any] = []
    for log in logs():
        for show in SHOWS:
            for _ in range(5):
                stream = AGUIStream(SCOPE, "r", show=show, after=-1)
                cases.append(run(sent_ag_ui(stream, some_pieces(log, source))))
                expected.append(messages_of(log, show))
    for result, messages in zip(read_all(cases), expected, strict=True):
        assert result["errors"] == []
        found = {each["id"]: each for each in same(result["messages"])}
        assert found == {each["id"]: each for each in same(messages)}
        assert len(result["outcomes"]) == 1


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def cuts(client: str, data: bytes, replay: bytes) -> dict[str, Any]:
    return {"kind": "cuts", "client": client, "data": encoded(data), "replay": encoded(replay),
            "resumes": True}  # fmt: skip


def restored(log: Sequence[StoredEvent]) -> bytes:
    """The response to an AG-UI client that comes again."""
    stream = AGUIStream(SCOPE, "r2", after=log[-1].seq, snapshot=True, is_over=True)
    assert not any(stream.feed(each) for each in log)
    return b"".join(map(encode_data, stream.begin()))


def test_every_cut_by_error_or_by_a_clean_end_is_made_good_W11() -> None:
    cases: list[Any] = []
    for decision in (None, {"decision": "run"}):
        log = run_log(FULL, decision)
        data = sent(AISDKStream(SCOPE), log)
        cases.append(cuts("chat", data, data))
        cases.append(cuts("run", sent_ag_ui(AGUIStream(SCOPE, "r"), log), restored(log)))
    plain = run_log(PLAIN)
    data = sent(AISDKStream(SCOPE), plain)
    cases.append(cuts("chat", data, data))
    for each in cases:
        length = len(base64.b64decode(each["data"]))
        each["every"] = max(1, length // examples(300))
    alone = [{**each, "resumes": False} for each in cases]
    results = read_all([*cases, *alone])
    for result in results[: len(cases)]:
        assert result["count"] == 0, (result["first"], result["expected"])
        assert result["tried"] > 100
    # Clients that don't come again lack something nearly always.
    for result in results[len(cases) :]:
        assert result["count"] > 0.8 * result["tried"]


async def talk(kind: str) -> Any:
    """What npm's clients make of a server."""
    async with serving() as site:
        case = {"kind": kind, "url": str(site.client.base_url).rstrip("/")}
        (result,) = await anyio.to_thread.run_sync(read_all, [case])
        return result


async def test_chats_of_a_server_go_on_in_every_client_W8_W11_W16() -> None:
    result = await talk("talkChat")
    assert result["errors"] == [None, None, None]
    user, answer, again, _ = result["first"]
    assert [each["id"] for each in (user, again)] == ["m0", "m1"]

    def state(message: Any) -> str:
        (part,) = [part for part in message["parts"] if part.get("toolCallId") == "p1"]
        return str(part["state"])

    assert state(result["held"][0]) == "approval-requested"
    assert state(answer) == "output-available"
    # The second one said no, too late; all show what happened.
    assert result["second"] == result["third"] == [answer]
    assert same(result["shown"])[1] == answer


async def test_runs_of_a_server_go_on_in_every_client_W9_W11() -> None:
    result = await talk("talkRun")
    kinds = [outcome["type"] for outcome in result["outcomes"]]
    assert kinds == ["interrupt", "interrupt", "success", "success"]
    assert result["outcomes"][0] == result["outcomes"][1]
    assert "paid 90" in [each.get("content") for each in result["first"]]
    assert result["third"] == result["first"]
    assert result["held"][0]["content"] == "Please."
