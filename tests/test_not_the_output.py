"""Everything is logged, but not what tools gave: in spans, logs and cassettes alike."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "otel"))

from cassette_toolkit import model_of, no_network
from every_api import APIS
from otel_toolkit import Exported

from lutumpy import Session, ToolError, Toolset, tool, tool_fn
from lutumpy.cli import main
from lutumpy.loops import run_tools
from lutumpy.testing import Call, Cassette, Reply, serve, transcript_snapshot

OUTPUT = "the-output-7c1d"


@tool_fn(effect="read")
def read_mail(box: str) -> dict[str, Any]:
    """Read somebody's mail."""
    return {"box": [OUTPUT, 1], "text": OUTPUT}


@tool_fn(effect="read")
def read_diary(day: str) -> str:
    """Read a diary."""
    raise ToolError(OUTPUT)


class Private(Toolset):
    read_mail, read_diary = tool(read_mail), tool(read_diary)


SCRIPT = [
    Reply(calls=[Call("read_mail", {"box": "inbox-1"}), Call("read_diary", {"day": "monday-2"})]),
    Reply(text="There is nothing in it that matters."),
]


def without_outputs(name: str, text: str) -> str | None:
    """What `Telemetry(content=)` exports of an attribute."""
    if name == "gen_ai.tool.call.result" or OUTPUT not in text:
        return None if name == "gen_ai.tool.call.result" else text
    messages: Any = json.loads(text)
    for message in messages:
        for part in message["parts"]:
            if part["type"] == "tool_call_response":
                part["response"] = "[left out]"
    return json.dumps(messages)


@pytest.mark.parametrize("api", APIS)
async def test_spans_logs_and_cassettes_have_everything_but_the_output(
    api: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "a.jsonl"

    async def talk(cassette: Cassette, url: str | None) -> str:
        session = Session()
        session.push_user("Is there anything in box inbox-1?")
        llm = model_of(cassette, api, url, is_async=True)
        result = await run_tools(session, llm, tools=Private, telemetry=telemetry)
        told = transcript_snapshot(session)
        assert OUTPUT in told
        return str(result.text)

    with Exported() as exported:
        telemetry = exported.telemetry(content=without_outputs)
        async with serve(SCRIPT) as server, Cassette(path, "record", outputs=False) as cassette:
            text = await talk(cassette, server.url)
        with no_network():
            async with Cassette(path, outputs=False) as cassette:
                assert await talk(cassette, None) == text
        spans = exported.text()
    logged = "\n".join([f"{record.getMessage()} {vars(record)}" for record in caplog.records])
    written = path.read_text(encoding="utf-8")
    for kept in (logged, written, spans):
        assert OUTPUT not in kept
        assert "read_mail" in kept
    for kept in (written, spans):
        for word in ("inbox-1", "monday-2", "There is nothing in it that matters."):
            assert word in kept
    assert main(["check", str(path)]) == 0
