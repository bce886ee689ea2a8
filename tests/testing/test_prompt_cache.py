"""The test server counts cached tokens by the longest common beginning, for every API (PB21)."""

from __future__ import annotations

from typing import Any

import pytest
from every_api import APIS
from every_client import sync_model_at

from lutumpy import NeedsTools, Session, Toolset, tool, tool_fn
from lutumpy.models import Api
from lutumpy.testing import Call, Reply, serve

CACHING = [api for api in APIS if api != "ollama_chat"]  # which tells nothing of a cache


@tool_fn
def look(key: str) -> str:
    """Look something up, wherever it is:"""
    return key


@tool_fn
def other(key: str) -> str:
    """Do something else."""
    return key


class Tools(Toolset):
    look = tool(look)


class More(Toolset):
    look = tool(look)
    other = tool(other)


def usages(api: Api, again: type[Toolset], *, streamed: bool = False) -> list[Any]:
    """Usages of four requests of one conversation; the last has these tools."""
    # Only Messages marks what is to be cached unasked.
    options: dict[str, Any] = {"cache": "auto"} if api == "bedrock_converse" else {}
    script = [Reply(calls=[Call("look", {"key": f"k{n}"})]) for n in range(4)]
    found = []
    with serve(script) as server, sync_model_at(api, server.url, **options) as llm:
        session = Session()
        session.push_system("Be brief, and think of what you were told.")
        session.push_user("Go on until everything was looked up.")
        for tools in (Tools, Tools, Tools, again):
            turn = session.text_turn(llm, tools=tools)
            outcome: Any = None
            if streamed:
                with turn.stream_sync() as stream:
                    outcome = [*stream] and stream.outcome
            else:
                outcome = turn.collect_sync()
            assert isinstance(outcome, NeedsTools)
            outcome.round.commit(session, [call.complete("ok") for call in outcome.round.calls])
            found.append(session.turns()[-1].usage)
    return found


@pytest.mark.parametrize("api", CACHING)
def test_what_was_read_before_is_cached_until_the_beginning_changes_PB21(api: Api) -> None:
    first, second, third, same = usages(api, Tools)
    assert first.cached_input_tokens == 0
    # Each request begins with the one before it, and all of that was read.
    assert 0 < second.cached_input_tokens <= first.all_input_tokens
    assert second.cached_input_tokens < third.cached_input_tokens < same.cached_input_tokens
    assert same.cached_input_tokens < same.all_input_tokens
    assert usages(api, Tools, streamed=True) == [first, second, third, same]
    changed = usages(api, More)[-1]
    assert changed.cached_input_tokens < third.cached_input_tokens / 2
