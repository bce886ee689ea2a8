"""One conversation goes through every API, by the SDK of each, and around again.

That is rules R1 and R2: what a provider wrote goes back to it exactly, and what others wrote is
told in its words, so that its server refuses nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import pytest
from every_api import APIS, CHECKS, messages_of
from every_client import model_at, sync_model_at

from lutumpy import Finished, ImagePart, NeedsTools, Session, TextPart, Toolset, tool, tool_fn
from lutumpy.apis import serving
from lutumpy.models import Api
from lutumpy.testing import Call, Reply, WireServer, serve

PNG = ImagePart(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")


@tool_fn
def look(what: str) -> list[TextPart | ImagePart]:
    """Look at something."""
    return [TextPart(f"a {what}"), PNG]


@tool_fn
def count(number: int) -> int:
    """Count."""
    return number


class Tools(Toolset):
    look = tool(look)
    count = tool(count)


def order_from(first: Api) -> list[Api]:
    """Every API twice around, and the first one once more."""
    at = APIS.index(first)
    around = [*APIS[at:], *APIS[:at]]
    return [*around, *around, first]


def calling(number: int) -> Reply:
    """Parallel calls behind reasoning and a text: one can't be read, one names no tool."""
    return Reply(
        text=f"Step {number}.",
        reasoning=f"Thought {number}.",
        calls=[
            Call("look", {"what": f"cat {number}"}),
            Call("count", {"number": number}),
            Call("count", {"number": "many"}),
            Call("nothing", {}),
        ],
    )


def begin() -> Session:
    session = Session()
    session.push_system("Be brief.")
    session.push_user(["What is this?", PNG])
    return session


def answer_calls(session: Session, outcome: NeedsTools | Finished) -> None:
    """Two results, one of them an error; what can't be read or found is rejected by the commit."""
    assert isinstance(outcome, NeedsTools)
    seen, counted = outcome.round.calls
    assert len(outcome.round.issues) == 2
    outcome.round.commit(
        session, [seen.complete([TextPart("a cat"), PNG]), counted.fail("can't count")]
    )


def values_in(value: Any) -> Iterator[Any]:
    """A JSON value and everything in it."""
    yield value
    inner = value.values() if isinstance(value, Mapping) else value
    if isinstance(value, Mapping | list):
        for each in inner:
            yield from values_in(each)


def check_requests(server: WireServer, session: Session, order: list[Api]) -> None:
    """Nothing was refused, and each provider got its own turns back as it wrote them."""
    assert [(request.api, request.status) for request in server.requests] == [
        (api, 200) for api in order
    ]
    turns = session.turns()
    assert [turn.api for turn in turns] == order
    for number, request in enumerate(server.requests):
        api = request.api
        assert [p for p in CHECKS[api](request.body) if p.certainty == "refused"] == []
        sent = list(values_in(messages_of(api, request.body)))
        own = [turn for turn in turns[:number] if turn.api == api]
        for turn in own:
            native = json.loads(turn.native)
            for piece in native if isinstance(native, list) else [native]:
                assert piece in sent, (api, piece)
        others = [turn for turn in turns[:number] if turn.api != api]
        told = json.dumps(sent[0], ensure_ascii=False)
        for turn in others:
            assert turn.text in told
            for call in turn.calls:
                assert call.name in told
    first_again = server.requests[len(APIS)]
    assert len(messages_of(first_again.api, first_again.body)) > len(APIS)


def script(order: list[Api]) -> list[Reply]:
    return [*[calling(number) for number in range(len(order) - 1)], Reply(text="A cat.")]


@pytest.mark.slow
@pytest.mark.pure
@pytest.mark.parametrize("first", APIS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_conversation_goes_through_every_api_and_back_R1_R2(
    first: Api, streamed: bool
) -> None:
    order = order_from(first)
    session = begin()
    async with serve(script(order)) as server, AsyncExitStack() as stack:
        models = {api: await stack.enter_async_context(model_at(api, server.url)) for api in APIS}
        for api in order:
            turn = session.text_turn(models[api], tools=Tools)
            if streamed:
                async with turn.stream() as stream:
                    async for _ in stream:
                        pass
                outcome: NeedsTools | Finished = stream.outcome
            else:
                outcome = await turn.collect()
            if isinstance(outcome, NeedsTools):
                answer_calls(session, outcome)
    assert isinstance(outcome, Finished)
    assert outcome.result.text == "A cat."
    check_requests(server, session, order)


def test_a_session_that_was_loaded_between_the_apis_goes_on_R1_R4() -> None:
    order = order_from(APIS[0])
    session = begin()
    with serve(script(order)) as server, ExitStack() as stack:
        models = {api: stack.enter_context(sync_model_at(api, server.url)) for api in APIS}
        for api in order:
            outcome = session.text_turn(models[api], tools=Tools).collect_sync()
            if isinstance(outcome, NeedsTools):
                answer_calls(session, outcome)
            session = Session.load(json.dumps(session.dump()))
    check_requests(server, session, order)


@pytest.mark.parametrize("api", APIS)
def test_images_of_a_user_and_of_a_result_reach_every_api_R2(api: Api) -> None:
    session = begin()
    with serve([calling(1), Reply(text="A cat.")]) as server:
        with sync_model_at(api, server.url) as llm:
            answer_calls(session, session.text_turn(llm, tools=Tools).collect_sync())
        adapter = serving(api, "adapter")
        body = json.dumps(adapter.messages(session.transcript))
    assert body.count("iVBORw0KGgo") == 2
