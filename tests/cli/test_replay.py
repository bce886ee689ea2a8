"""`lutumpy replay`: what other tools and policies would change of a recorded conversation."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from lutumpy.cli import main
from lutumpy.durable import SqliteStore
from lutumpy.testing import PastConversation

CASSETTE = Path(__file__).parent.parent / "fixtures" / "cassettes" / "demo_openai_responses.jsonl"
TOOLS = "lutumpy.demo.shop:_HelpDesk"
MODULE = """
from lutumpy import Reject, RunNormally, Toolset, tool
from lutumpy.demo.shop import TrackParcel, get_order

class Small(Toolset):
    get_order, track_parcel = tool(get_order), tool(TrackParcel)

async def strict(call):
    return Reject("ask first") if call.metadata.name == "refund" else RunNormally()

def broken(call):
    raise ZeroDivisionError
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "replay_tools.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_the_same_tools_change_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(CASSETTE), "--with", TOOLS]) == 0
    assert capsys.readouterr().out == "conversation 1, 5 rounds: nothing differs\n"


def test_what_would_differ_is_said_for_people_and_programs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(CASSETTE), "--with", "replay_tools:Small"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("conversation 1, 5 rounds: 1 call would fare otherwise round 4: refund(")
    assert "was run, would be refused" in out
    options = ["--with", TOOLS, "--policy", "replay_tools:strict", "--json"]
    assert main(["replay", str(CASSETTE), *options]) == 1
    found, whole = map(json.loads, capsys.readouterr().out.splitlines())
    assert (found["round"], found["tool"], found["now"], found["detail"]) == (
        4,
        "refund",
        "refused",
        "ask first",
    )
    assert whole == {"type": "conversation", "number": 1, "rounds": 5, "differences": 1}
    assert main(["replay", str(CASSETTE), *options, "--at", "5"]) == 0


def test_dumps_and_stores_are_read_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (past,) = PastConversation.from_cassette(CASSETTE)
    dump = tmp_path / "session.json"
    dump.write_text(json.dumps(past.session.dump(), indent=1))
    assert main(["replay", str(dump), "--with", TOOLS]) == 0
    store = tmp_path / "store.db"

    async def fill() -> None:
        async with SqliteStore(store) as opened:
            await opened.create("desk-1", past.session)

    asyncio.run(fill())
    assert main(["replay", str(store), "--scope", "desk-1", "--with", TOOLS]) == 0
    assert "5 rounds" in capsys.readouterr().out
    assert main(["replay", str(store), "--scope", "desk-2", "--with", TOOLS]) == 2


def test_what_cant_be_used_is_said(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(tmp_path / "none.jsonl"), "--with", TOOLS]) == 2
    assert main(["replay", str(CASSETTE), "--with", "replay_tools:None"]) == 2
    (tmp_path / "bytes").write_bytes(b"\xff")
    assert main(["replay", str(tmp_path / "bytes"), "--with", TOOLS]) == 2
    options = ["--with", TOOLS, "--policy", "replay_tools:broken"]
    assert main(["replay", str(CASSETTE), *options]) == 2
    assert "ZeroDivisionError" in capsys.readouterr().err
