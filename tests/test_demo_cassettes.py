"""The conversation of the demo as it was recorded on every API, whole and streamed, replayed.

`python tests/test_demo_cassettes.py` records it anew, at the test server.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cassette_toolkit import model_of, no_network
from every_api import APIS

from lutumpy import Finished, NeedsTools, Session
from lutumpy.apis import serving
from lutumpy.cli import main
from lutumpy.demo import QUESTION, SCRIPT, SYSTEM, execute
from lutumpy.demo.shop import _HelpDesk as HelpDesk
from lutumpy.models import Api
from lutumpy.testing import (
    Cassette,
    called,
    calls,
    expect,
    never_called,
    serve,
    transcript_snapshot,
)

FOLDER = Path(__file__).parent / "fixtures" / "cassettes"
SNAPSHOT = FOLDER / "demo.txt"


def file_of(api: Api, streamed: bool) -> Path:
    return FOLDER / f"demo_{api}{'_stream' if streamed else ''}.jsonl"


async def talk(llm: Any, streamed: bool) -> Session:
    session = Session()
    session.push_system(SYSTEM)
    session.push_user(QUESTION)
    while True:
        turn = session.text_turn(llm, tools=HelpDesk)
        if streamed:
            async with turn.stream() as stream:
                outcome = await stream.collect()
        else:
            outcome = await turn.collect()
        if isinstance(outcome, Finished):
            return session
        assert isinstance(outcome, NeedsTools)
        outcome.round.commit(session, await execute(outcome.round))


@pytest.mark.parametrize("api", APIS)
async def test_the_demo_is_replayed_and_says_the_same_on_every_api(api: Api) -> None:
    for streamed in (False, True):
        with no_network():
            async with Cassette(file_of(api, streamed)) as cassette:
                session = await talk(model_of(cassette, api, is_async=True), streamed)
        assert transcript_snapshot(session) == SNAPSHOT.read_text()
        expect(
            session,
            called(HelpDesk.get_order, times=2, before=HelpDesk.refund),
            called(HelpDesk.track_parcel, times=1, where=lambda parcel: parcel.carrier == "south"),
            called(HelpDesk.track_parcel, times=1, status="rejected"),
            called(HelpDesk.refund, where=lambda refund: refund.percent == 20),
            never_called(HelpDesk.cancel_order),
        )
        assert [call.round for call in calls(session)] == [1, 1, 2, 2, 3, 4]


def test_the_doctor_reads_cassettes_and_finds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(file_of(api, streamed)) for api in APIS for streamed in (False, True)]
    assert main(["check", *files]) == 0
    assert "60 documents checked: no problem" in capsys.readouterr().out
    assert main(["show", files[0]]) == 0
    assert "717" not in capsys.readouterr().out


def test_no_key_is_in_them() -> None:
    for file in FOLDER.iterdir():
        text = file.read_text()
        assert "canary" not in text.lower(), file.name
        assert "127.0.0.1" not in text, file.name


async def _record(api: Api, streamed: bool) -> None:
    file = file_of(api, streamed)
    async with serve(SCRIPT) as server, Cassette(file, "record") as cassette:
        session = await talk(model_of(cassette, api, server.url, is_async=True), streamed)
    host = serving(api, "rules").SHAPE.host
    source = {"source": "the demo at the test server"}
    lines = file.read_text().splitlines()
    entries = [{**source, **json.loads(line), "host": host} for line in lines]
    file.write_text("".join([json.dumps(e, ensure_ascii=False) + "\n" for e in entries]))
    SNAPSHOT.write_text(transcript_snapshot(session))


if __name__ == "__main__":
    from provider_environment import leave_out_providers

    leave_out_providers(os.environ)
    for name in APIS:
        for is_streamed in (False, True):
            asyncio.run(_record(name, is_streamed))
