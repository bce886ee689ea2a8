"""Whatever a conversation goes through, its transcript can be sent to every API.

That is rules K1 to K6, R1 to R6, S4 and C1 to C8. A state machine drives a session with random
answers of every API, results, edits, discards, forks, dumps and failures; after each step the
transcript is sent to the test server of every API, which refuses what the real ones refuse.
"""

from __future__ import annotations

import http.client
import json
import socket
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conversation_replies import REPLIES
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from profiles import examples
from pydantic import BaseModel

from lutumpy import (
    CommitError,
    Complete,
    ImagePart,
    NeedsTools,
    Reject,
    RoundClosedError,
    RunNormally,
    Session,
    StaleRoundError,
    TextPart,
    ToolAvailability,
    ToolInput,
    ToolRound,
    ToolRoundPlan,
    Toolset,
    TranscriptError,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.apis import api_names, serving
from lutumpy.testing import WireServer, serve

ADAPTERS: dict[str, Any] = {name: serving(name, "adapter") for name in api_names()}
GEMINI = "gemini-3-flash-preview"  # the strictest about signatures
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
MODELS = {"gemini_generate_content": GEMINI, "bedrock_converse": CLAUDE}
"""For whom requests are written, where that makes a difference."""
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "gemini_generate_content": f"/v1beta/models/{GEMINI}:generateContent",
    "bedrock_converse": f"/model/{CLAUDE}/converse",
    "ollama_chat": "/api/chat",
}
HEADERS = {
    "Content-Type": "application/json",
    "Authorization": "Bearer test",
    "x-api-key": "test",
    "anthropic-version": "2023-06-01",
}


class Found(BaseModel):
    hits: list[str]


@tool_input(name="search")
class Search(ToolInput[Found]):
    """Search."""

    query: str
    limit: int = 3


@tool_input(name="look")
class Look(ToolInput[list[TextPart | ImagePart]]):
    """Look at something."""

    what: str = "all"


@tool_fn
def shout(text: str) -> str:
    """Shout."""
    return text.upper()


@tool_fn
def hidden(text: str) -> str:
    """Not offered by default."""
    return text


class Tools(Toolset):
    search = tool(Search)
    look = tool(Look)
    shout = tool(shout)
    hidden = tool(hidden, off=True)


PNG = ImagePart(data=b"\x89PNG", media_type="image/png")
OUTPUTS: dict[str, list[Any]] = {
    "search": [Found(hits=["a", "\ud800"]), Found(hits=[])],
    "look": [[TextPart("seen"), PNG], [TextPart("")], [PNG], []],
    "shout": ["HI", "", " ", "\ud83d"],
    "hidden": ["x"],
}

texts = st.sampled_from(["hello", "  spaced ", "\ud800 broken", "日本", "x" * 300]) | st.text(
    min_size=1, max_size=20
)
answers_text = st.sampled_from(["", " ", "Let me look.", "\ud800"]) | st.text(max_size=12)
names = st.sampled_from(
    [
        "search",
        "search",
        "look",
        "look",
        "shout",
        "hidden",
        "serch",
        "",
        "a b",
        "functions.x",
        "n" * 70,
    ]
)
good = {
    "search": ['{"query": "x"}', '{"query": "y", "limit": "4"}'],
    "look": ["", "{}", "null", '{"what": null}'],
    "shout": ['{"text": "hi"}'],
    "hidden": ['{"text": "hi"}'],
}
odd_arguments = st.sampled_from(
    [
        '{"query": 1}',
        '{"query": "cut',
        "[1]",
        '"text"',
        "12",
        "{",
        "{} {}",
        '{"text": "\\ud800"}',
        '{"n": NaN}',
        "\ud800",
        "[" * 300,
    ]
)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, str, str]:
    name = draw(names)
    arguments = draw(st.sampled_from(good.get(name, ["{}"])) | odd_arguments)
    return draw(st.sampled_from(["", "c1", "c1", "c2", "call_" + "x" * 20])), name, arguments


class Conversations(RuleBasedStateMachine):
    server: WireServer
    connection: http.client.HTTPConnection

    def __init__(self) -> None:
        super().__init__()
        self.session = Session()
        self.round: ToolRound[Any] | ToolRoundPlan[Any] | None = None
        self.number = 0
        self.moved = False

    @initialize(system=st.booleans())
    def begin(self, system: bool) -> None:
        if system:
            self.session.push_system("Be brief.")
        self.session.push_user("Hello")

    # --- the application --------------------------------------------------------------------------

    @rule(
        text=texts,
        role=st.sampled_from(["user", "user", "system", "developer", "assistant"]),
        ephemeral=st.booleans(),
        image=st.booleans(),
    )
    def push(self, text: str, role: str, ephemeral: bool, image: bool) -> None:
        before = list(self.session.transcript)
        content: Any = [text, PNG] if image and role == "user" else text
        try:
            getattr(self.session, f"push_{'ephemeral_' if ephemeral else ''}{role}")(content)
            self.moved = True
        except TranscriptError:
            assert list(self.session.transcript) == before

    @rule()
    def fork(self) -> None:
        if self.round is not None:
            with pytest.raises(StaleRoundError):
                self.round.commit(self.session.fork(), [c.fail("x") for c in self.pending()])
        else:
            self.session = self.session.fork()

    @rule()
    def dump(self) -> None:
        copy = Session.load(json.loads(json.dumps(self.session.dump())))
        for api in ADAPTERS:
            assert request(api, copy) == request(api, self.session)
        if self.round is None:
            self.session = copy

    # --- the model --------------------------------------------------------------------------------

    @precondition(lambda self: self.round is None)
    @rule(
        api=st.sampled_from(list(ADAPTERS)),
        text=answers_text,
        made=st.lists(calls(), max_size=3),
        finish=st.sampled_from(["", "", "", "length", "refusal", "paused"]),
        extra=st.sampled_from(
            ["", "", "reasoning", "refusal", "server", "running", "custom", "computer"]
        ),
        all_tools=st.booleans(),
    )
    def answer(
        self,
        api: str,
        text: str,
        made: list[tuple[str, str, str]],
        finish: str,
        extra: str,
        all_tools: bool,
    ) -> None:
        self.number += 1
        reply = REPLIES[api](text, made, finish, extra, self.number)
        offer = Tools.offer(available=ToolAvailability.all() if all_tools else None)
        outcome = offer.read(ADAPTERS[api].response(reply), self.session)
        self.moved = False
        if isinstance(outcome, NeedsTools):
            self.round = outcome.round
            wanted = len(made) + (extra in ("custom", "computer") and api == "openai_responses")
            wanted += extra == "custom" and api == "openai_chat" and bool(made)
            assert len(outcome.round.calls) + len(outcome.round.issues) == wanted
        else:
            assert self.session.turns()[-1].blocks == outcome.result.turn.blocks

    # --- what becomes of a round ------------------------------------------------------------------

    def pending(self) -> Any:
        assert self.round is not None
        return self.round.pending if isinstance(self.round, ToolRoundPlan) else self.round.calls

    @precondition(lambda self: self.round is not None)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        assert self.round is not None
        results = []
        for call in self.pending():
            kind = data.draw(st.sampled_from(["complete", "complete", "fail", "reject"]))
            if kind == "complete":
                results.append(
                    call.complete(data.draw(st.sampled_from(OUTPUTS[call.metadata.name])))
                )
            else:
                results.append(
                    getattr(call, kind)(data.draw(st.sampled_from(["", "no \ud800", "broken"])))
                )
        results += [
            issue.fail("own answer") for issue in self.round.issues if data.draw(st.booleans())
        ]
        results = data.draw(st.permutations(results))
        before = list(self.session.transcript)
        if self.moved:
            with pytest.raises(StaleRoundError):
                self.round.commit(self.session, results)
            assert list(self.session.transcript) == before
            try:
                self.round.commit(self.session, results, rebase=True)
            except TranscriptError:
                self.round.discard()
        else:
            if results:
                with pytest.raises(CommitError):
                    self.round.commit(self.session, [*results, results[0]])
                assert list(self.session.transcript) == before
            self.round.commit(self.session, results)
        with pytest.raises(RoundClosedError):
            self.round.commit(self.session, results)
        self.round = None

    @precondition(lambda self: self.round is not None)
    @rule(decision=st.sampled_from(["run", "complete", "reject"]))
    def decide(self, decision: str) -> None:
        def policy(call: Any) -> Any:
            if decision == "run":
                return RunNormally(call.input)
            return (
                Reject("no") if decision == "reject" else Complete(OUTPUTS[call.metadata.name][0])
            )

        assert self.round is not None
        self.round = self.round.apply_hooks_sync(policy)

    @precondition(lambda self: self.round is not None)
    @rule()
    def discard(self) -> None:
        assert self.round is not None
        self.round.discard()
        self.round = None

    def teardown(self) -> None:
        if self.round is not None:
            self.round.discard()

    # --- what always holds ------------------------------------------------------------------------

    @invariant()
    def every_api_takes_the_transcript(self) -> None:
        for api in ADAPTERS:
            body = request(api, self.session)
            if body is None:
                continue
            if api not in MODELS:  # the others have it in the path
                body = {"model": "m", **body}
            self.connection.request("POST", PATHS[api], json.dumps(body), HEADERS)
            response = self.connection.getresponse()
            said = response.read()
            assert response.status == 200, (api, said, body)


def request(api: str, session: Session) -> dict[str, Any] | None:
    """The request, with a question added where the transcript has nothing to answer.

    `None` where that isn't accepted.
    """
    make: Callable[..., dict[str, Any]] = ADAPTERS[api].request
    options = {"model": MODELS[api]} if api in MODELS else {}
    try:
        return make(session.transcript, Tools.offer(), **options)
    except TranscriptError:
        asked = session.fork()
        try:
            asked.push_user("And?")
        except TranscriptError:
            return None
        return make(asked.transcript, Tools.offer(), **options)


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serve(None) as running:
        yield running


@pytest.mark.pure
@pytest.mark.slow
def test_every_transcript_is_accepted_by_every_api_K5(server: WireServer) -> None:
    Conversations.server = server
    host, _, port = server.url.removeprefix("http://").partition(":")
    Conversations.connection = http.client.HTTPConnection(host, int(port))
    Conversations.connection.connect()
    # Head and body go out as two writes; without this each request waits for a delayed
    # acknowledgement.
    Conversations.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = settings(
            max_examples=examples(60),
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        from hypothesis.stateful import run_state_machine_as_test

        run_state_machine_as_test(Conversations, settings=run)
    Conversations.connection.close()
