"""`lutumpy rounds`: what waits in a store, for people."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from cli_toolkit import Run

pytest.importorskip("anyio", reason="the extra execution isn't installed")

from lutumpy import Hold, RunNormally, Session, Skip, ToolDecision, Toolset, tool, tool_fn
from lutumpy.durable import Answered, Claim, DurableLoop, SqliteStore, Waiting
from lutumpy.execution import Dispatcher, ExecutionResult, UnresolvedCall
from lutumpy.hooks import BaseToolCall
from lutumpy.models import ToolMetadata
from lutumpy.testing import Call, Reply, ScriptedModel

SCOPE = "desk 17"
NASTY = "old\x1b[31m\u202e"


@tool_fn
def wipe(volume: str, force: bool = False, *, done: Skip[list[str]]) -> str:
    """Wipe a volume."""
    done.append(f"{volume} {force}")
    return "wiped"


class Desk(Toolset):
    wipe = tool(wipe)


def hold(call: BaseToolCall) -> ToolDecision:
    return Hold("can't be undone") if call.metadata.id == "c1" else RunNormally()


class Agent:
    """A program with a store, that can be run again and again."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "agent.db"
        self.done: list[str] = []

    def run(self, *, new: bool = False) -> Any:
        return asyncio.run(self._run(new))

    async def _run(self, new: bool) -> Any:
        calls = [Call("wipe", {"volume": NASTY}, id="c1"), Call("wipe", {"volume": "b"}, id="c2")]
        script = [Reply(calls=calls), Reply(text="done")]
        async with SqliteStore(self.path) as store:
            if new:
                session = Session()
                session.push_user("wipe it")
                await store.create(SCOPE, session)
            dispatch = Dispatcher(Desk, context={"done": self.done})
            llm = ScriptedModel(script if new else script[1:])
            loop = DurableLoop(store, llm, tools=Desk, dispatch=dispatch, hooks=hold)
            return await loop.run(SCOPE)

    async def leave_unresolved(self) -> None:
        async with SqliteStore(self.path) as store:
            claim = await store.claim(SCOPE)
            assert isinstance(claim, Claim)
            metadata = ToolMetadata("c9", "wipe", '{"volume":"c"}')
            value = ExecutionResult(metadata, "?", "error", outcome="maybe_executed").dump()
            value["unresolved"] = UnresolvedCall(SCOPE, metadata, '{"volume":"c"}').dump()
            await store.record(claim, "call:c9", value)
            await store.release(claim)


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    made = Agent(tmp_path)
    assert isinstance(made.run(new=True), Waiting)
    return made


def records(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_what_waits_is_listed(run: Run, agent: Agent) -> None:
    ended = run("rounds", "list", agent.path)
    assert ended.code == 1
    assert "1 plan waiting for a person" in ended.out
    assert SCOPE in ended.out
    assert "wipe" in ended.out
    assert "\x1b[31m" not in ended.out
    assert "\u202e" not in ended.out
    ended = run("rounds", "list", agent.path, "--json")
    (held,) = records(ended.out)
    assert (ended.code, held["type"], held["scope"]) == (1, "held", SCOPE)
    assert [call["call_id"] for call in held["calls"]] == ["c1"]
    assert held["calls"][0]["input"] == {"volume": NASTY, "force": False}


def test_every_conversation_is_listed(run: Run, agent: Agent) -> None:
    ended = run("rounds", "list", agent.path, "--all")
    assert ended.code == 0
    assert "1 conversation" in ended.out
    assert "waiting" in ended.out
    ended = run("rounds", "list", agent.path, "--all", "--json")
    (found,) = records(ended.out)
    assert (found["type"], found["scope"], found["status"]) == ("conversation", SCOPE, "waiting")


def test_one_conversation_is_shown(run: Run, agent: Agent, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    ended = run("rounds", "show", agent.path, SCOPE, "--out", page)
    assert ended.code == 0
    assert "waiting for a person" in ended.out
    assert "can't be undone" in ended.out
    drawn = page.read_text(encoding="utf-8")
    assert "Waits for a person" in drawn
    assert "a round that is not in the transcript" in drawn
    ended = run("rounds", "show", agent.path, SCOPE, "--json")
    (held,) = records(ended.out)
    assert held["plan"]["format"] == "lutumpy.plan"
    ended = run("rounds", "show", agent.path, SCOPE, "--out", tmp_path / "no" / "page.html")
    assert ended.code == 2
    assert "can't be written" in ended.err
    assert "<html" in run("rounds", "show", agent.path, SCOPE, "--out", "-").out


@pytest.mark.parametrize(
    ("arguments", "status", "done"),
    [
        (["run"], "ok", [f"{NASTY} False", "b False"]),
        (["run", "--input", '{"volume": "x", "force": true}'], "ok", ["x True", "b False"]),
        (["complete", "--output", '"as it was"'], "ok", ["b False"]),
        (["reject", "--reason", "not today"], "rejected", ["b False"]),
    ],
)
def test_a_call_is_decided_and_the_program_goes_on(
    run: Run, agent: Agent, arguments: list[str], status: str, done: list[str]
) -> None:
    ended = run("rounds", "decide", agent.path, SCOPE, "c1", *arguments, "--by", "ann")
    assert ended.code == 0
    assert f"c1 of {SCOPE}" in ended.out
    again = run("rounds", "decide", agent.path, SCOPE, "c1", "run", "--by", "bob", "--json")
    assert again.code == 1
    assert records(again.out)[0]["taken"] is False
    assert (
        "decided before"
        in run("rounds", "decide", agent.path, SCOPE, "c1", "run", "--by", "bob").err
    )
    assert run("rounds", "list", agent.path).code == 0
    assert isinstance(agent.run(), Answered)
    # They run at once, in threads.
    assert sorted(agent.done) == sorted(done)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["c1", "burn", "--by", "ann"], "is not one of run, complete, reject"),
        (["c1", "run", "--input", "{", "--by", "ann"], "--input is not JSON"),
        (["c1", "run", "--reason", "x", "--by", "ann"], "run takes --input alone"),
        (["c1", "complete", "--by", "ann"], "complete needs --output"),
        (["c1", "reject", "--output", "1", "--by", "ann"], "reject takes --reason alone"),
        (["c2", "run", "--by", "ann"], "isn't held"),
        (["c1", "run", "--by", "ann", "--plan", "ffff"], "no such plan"),
    ],
)
def test_what_does_not_fit_is_refused(
    run: Run, agent: Agent, arguments: list[str], said: str
) -> None:
    ended = run("rounds", "decide", agent.path, SCOPE, *arguments)
    assert ended.code == 2
    assert said in " ".join(ended.err.split())
    assert run("rounds", "list", agent.path).code == 1


def test_a_call_of_unknown_outcome_is_shown_and_resolved(run: Run, agent: Agent) -> None:
    asyncio.run(agent.leave_unresolved())
    assert "perhaps executed" in run("rounds", "show", agent.path, SCOPE).out
    shown = records(run("rounds", "show", agent.path, SCOPE, "--json").out)
    assert [(one["type"], one.get("call_id")) for one in shown][1] == ("unresolved", "c9")
    resolve = ("rounds", "resolve", agent.path, SCOPE, "c9")
    assert run(*resolve, "perhaps", "--by", "ann").code == 2
    assert run(*resolve, "did_not_happen", "--by", "ann").code == 0
    ended = run(*resolve, "happened", "--by", "ann")
    assert ended.code == 2
    assert "no call 'c9'" in ended.err


def test_what_was_resolved_is_told_as_json(run: Run, agent: Agent) -> None:
    asyncio.run(agent.leave_unresolved())
    ended = run("rounds", "resolve", agent.path, SCOPE, "c9", "happened", "--by", "ann", "--json")
    assert ended.code == 0
    (told,) = records(ended.out)
    known = {"scope": SCOPE, "call_id": "c9", "decision": "happened", "by": "ann"}
    assert told == {"type": "resolved", **known}


def test_what_a_call_gave_is_resolved_with_it_P8(run: Run, agent: Agent) -> None:
    asyncio.run(agent.leave_unresolved())
    resolve = ("rounds", "resolve", agent.path, SCOPE, "c9")
    said = ("--by", "ann", "--output", '{"receipt": 7}')
    assert run(*resolve, "did_not_happen", *said).code == 2
    assert run(*resolve, "happened", "--by", "ann", "--output", "{").code == 2
    ended = run(*resolve, "happened", *said, "--json")
    assert ended.code == 0
    (told,) = records(ended.out)
    assert told["output"] == {"receipt": 7}


def test_conversations_are_listed_by_prefix_and_status(run: Run, agent: Agent) -> None:
    listed = ("rounds", "list", agent.path)
    assert run(*listed, "--prefix", "other").code == 0
    assert run(*listed, "--prefix", "desk").code == 1
    found = records(run(*listed, "--all", "--status", "waiting", "--json").out)
    assert [one["scope"] for one in found] == [SCOPE]
    assert (found[0]["attempts"], found[0]["last_error"]) == (0, None)
    assert found[0]["age"] >= 0
    assert records(run(*listed, "--all", "--after", SCOPE, "--json").out) == []
    assert "is not one of" in run(*listed, "--all", "--status", "lost").err
    assert "go with --all" in run(*listed, "--after", "x").err


def test_calls_of_unknown_outcome_are_listed(run: Run, agent: Agent) -> None:
    assert run("rounds", "unresolved", agent.path).code == 0
    asyncio.run(agent.leave_unresolved())
    ended = run("rounds", "unresolved", agent.path)
    assert ended.code == 1
    assert "c9" in ended.out
    (found,) = records(run("rounds", "unresolved", agent.path, "--json").out)
    assert (found["scope"], found["call_id"], found["tool"]) == (SCOPE, "c9", "wipe")


@pytest.mark.slow
def test_what_is_next_is_printed(run: Run, agent: Agent) -> None:
    ended = run("rounds", "next", agent.path)
    assert (ended.code, ended.out) == (1, "")
    assert "nothing to go on with" in ended.err
    run("rounds", "decide", agent.path, SCOPE, "c1", "reject", "--by", "ann")
    assert run("rounds", "next", agent.path, "--reserve", "0").out == f"{SCOPE}\n"
    (found,) = records(run("rounds", "next", agent.path, "--reserve", "0.3", "--json").out)
    assert found["scope"] == SCOPE
    assert run("rounds", "next", agent.path, "--wait").out == f"{SCOPE}\n"


def test_a_stuck_one_is_retried_and_a_lease_is_broken(run: Run, agent: Agent) -> None:
    said = (agent.path, SCOPE, "--by", "ann")
    assert "is nobody's" in run("rounds", "break", *said).err
    assert "is not stuck" in run("rounds", "retry", *said).err

    async def claim(*, stuck: bool) -> None:
        async with SqliteStore(agent.path) as store:
            claimed = await store.claim(SCOPE)
            assert isinstance(claimed, Claim)
            if stuck:
                await store.fail(claimed, "it killed its process", stuck=True)

    asyncio.run(claim(stuck=False))
    assert run("rounds", "break", *said).code == 0
    asyncio.run(claim(stuck=False))
    assert run("rounds", "break", *said, "--stop").code == 0
    assert "it was stopped by ann" in run("rounds", "list", agent.path, "--all").out
    asyncio.run(claim(stuck=True))
    assert "it killed its process" in run("rounds", "list", agent.path, "--all").out
    (found,) = records(run("rounds", "retry", *said, "--json").out)
    assert found == {"type": "retried", "scope": SCOPE, "by": "ann", "done": True}
    assert run("rounds", "retry", *said).code == 1


def test_a_conversation_is_forked_and_old_records_are_pruned(run: Run, agent: Agent) -> None:
    run("rounds", "decide", agent.path, SCOPE, "c1", "reject", "--by", "ann")
    agent.run()
    listed = records(run("rounds", "history", agent.path, SCOPE, "--json").out)
    assert [row["at"] for row in listed] == ["1.0", "1.1", "1.2"]
    assert "wipe c2" in run("rounds", "history", agent.path, SCOPE).out
    fork = ("rounds", "fork", agent.path, SCOPE)
    assert run(*fork, "--at", "1.0", "--to", "new").code == 0
    assert run(*fork, "--at", "9.9", "--to", "newer").code == 2
    assert "two numbers" in run(*fork, "--at", "1", "--to", "newer").err
    itself = run(*fork, "--at", "1.0", "--to", SCOPE)
    assert (itself.code, "--to is another id" in itself.err) == (2, True)
    assert records(run(*fork, "--at", "1.1", "--to", "x", "--json").out)[0]["to"] == "x"
    prune = ("rounds", "prune", agent.path, "--before")
    assert "removed: 0 records" in run(*prune, "1d").out
    assert "no time zone" in run(*prune, "2026-11-25T12:00:00").err
    for odd in ("soon", "9999999d", "99999999999999h", "9" * 5000 + "d"):
        assert "not a moment" in " ".join(run(*prune, odd).err.split())
    assert "is not one of" in run(*prune, "1h", "--what", "items").err
    kinds = ("--what", "records", "--what", "conversations")
    (found,) = records(run(*prune, "2999-01-01T00:00:00+00:00", *kinds, "--json").out)
    assert (found["events"], found["conversations"]) == (0, 1)


def test_a_store_of_a_module_is_used(
    run: Run, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "stores_of_ours.py"
    module.write_text(
        f"from lutumpy.durable import SqliteStore\nstore = SqliteStore({str(agent.path)!r})\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert run("rounds", "list", "stores_of_ours:store").code == 1
    assert "has no nothing" in run("rounds", "list", "stores_of_ours:nothing").err
    assert run("rounds", "list", "no_such_module:store").code == 2


def test_nothing_waits(run: Run, agent: Agent) -> None:
    run("rounds", "decide", agent.path, SCOPE, "c1", "reject", "--by", "ann")
    agent.run()
    assert "nothing waits" in run("rounds", "show", agent.path, SCOPE).out


def test_what_is_no_store_is_named(run: Run, agent: Agent, tmp_path: Path) -> None:
    ended = run("rounds", "list", tmp_path / "nothing.db")
    assert (ended.code, ended.out) == (2, "")
    assert "there is no file" in ended.err
    assert not (tmp_path / "nothing.db").exists()
    junk = tmp_path / "junk.db"
    junk.write_bytes(b"no database, but long enough to be looked at" * 200)
    ended = run("rounds", "list", junk)
    assert ended.code == 2
    assert "can't be used" in ended.err
    ended = run("rounds", "show", agent.path, "nobody")
    assert ended.code == 2
    assert "no conversation 'nobody'" in ended.err
    assert run("rounds", "decide", agent.path, "nobody", "c1", "run", "--by", "ann").code == 2


def test_a_server_that_is_not_there_is_named(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="the extra postgres isn't installed")
    ended = run("rounds", "list", f"postgresql://nobody@/none?host={tmp_path}")
    assert ended.code == 2
    assert "can't be used" in ended.err


@pytest.mark.parametrize(
    "place",
    [
        "postgresql://ann:hunter22@127.0.0.1:1/db",
        "postgres://ann:hunter22@127.0.0.1:1/db?application_name=a@b",
        "postgresql://127.0.0.1:1/db?user=ann&password=hunter22",
        "postgresql://ann:hunter22@127.0.0.1:port/db",
        "postgresql://ann:hunter22/db",
        "postgresql://ann:hunter22@[::1/db",
        "postgresql://ann:hunter22 @127.0.0.1:1/db",
        "postgresql://ann:%7A%7ahunter22@127.0.0.1:1/db?wrong=1",
        "postgresql://ann:at@hunter22@127.0.0.1:1/db",
        "postgresql://ann:hunter22/slash@127.0.0.1:1/db",
        "postgresql+psycopg://ann:hunter22@127.0.0.1:1/db",
        "host=127.0.0.1 port=1 user=ann password=hunter22",
        "host=127.0.0.1 port=1 user=ann password = 'hunter22 and more'",
    ],
)
def test_a_password_in_an_address_is_in_no_message(run: Run, place: str) -> None:
    pytest.importorskip("psycopg", reason="the extra postgres isn't installed")
    for command in (["rounds", "list", place], ["rounds", "show", place, "c1"]):
        ended = run(*command)
        assert ended.code == 2
        assert "***" in ended.err
        assert "hunter22" not in ended.err + ended.out
        assert "more" not in ended.err


def test_what_is_no_password_is_named(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="the extra postgres isn't installed")
    for place in (
        "postgresql://ann@127.0.0.1:1/database",
        "postgresql://ann@127.0.0.1:1/database?connect_timeout=2",
        "postgresql://ann@127.0.0.1:1,127.0.0.2:1/database",
        str(tmp_path / "key=value.db"),
    ):
        ended = run("rounds", "list", place)
        assert ended.code == 2
        assert "***" not in ended.err
        assert place in ended.err
