"""What a program declares once serves all its threads, from the first use on."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from every_api import ADAPTERS, APIS
from pydantic import BaseModel

from lutumpy import NeedsTools, RunNormally, Session, ToolMetadata, Toolset, tool, tool_fn
from lutumpy.models import Api
from lutumpy.testing import Call, Reply, ScriptedModel

THREADS = 8
TOOLSETS = 5

T = TypeVar("T")


class Place(BaseModel):
    street: str
    number: int = 1


def declare() -> Any:
    """A toolset that nobody has used yet; with its models, schemas and renderings still to make."""

    def find(key: str, tags: list[str], place: Place, limit: int = 10) -> str:
        """Find something."""
        return f"{key} in {place.street}"

    def pay(amount: int, note: str | None = None) -> dict[str, int]:
        """Pay."""
        return {"amount": amount}

    return type("Shop", (Toolset,), {"find": tool(tool_fn(find)), "pay": tool(tool_fn(pay))})


def pass_on(metadata: ToolMetadata, input: Any) -> Any:
    """A hook that lets every call pass."""
    return RunNormally(input)


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    """Let threads take turns after a few byte codes."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def in_threads(run: Callable[[int], T]) -> list[T]:
    """What threads give that all begin at once; the first error of one is raised."""
    begin = threading.Barrier(THREADS)
    found: dict[int, T] = {}
    errors: list[BaseException] = []

    def work(number: int) -> None:
        begin.wait()
        try:
            found[number] = run(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error
    return [found[number] for number in range(THREADS)]


@pytest.mark.parametrize("api", APIS)
def test_threads_that_use_a_toolset_first_are_all_served(api: Api) -> None:
    for _ in range(TOOLSETS):
        tools = declare()
        hooks: Any = tools.hooks()

        hooks.on(tools.pay)(pass_on)

        def converse(number: int, tools: Any = tools, hooks: Any = hooks) -> list[str]:
            calls = [
                Call("find", {"key": f"k{number}", "tags": ["a"], "place": {"street": "Elm"}}),
                Call("pay", {"amount": number}),
                Call("pay", {"amount": "much"}),
            ]
            llm = ScriptedModel([Reply(calls=calls), Reply("done")], api=api)
            session = Session()
            session.push_user("go")
            outcome = session.text_turn(llm, tools=tools).collect_sync()
            assert isinstance(outcome, NeedsTools)
            plan = outcome.round.apply_hooks_sync(hooks)
            plan.commit(session, [call.complete(call.call_sync()) for call in plan.pending])
            session.text_turn(llm, tools=tools).collect_sync()
            results: Any = session.transcript[2]
            return [str(result.content) for result in results.results]

        for number, contents in enumerate(in_threads(converse)):
            assert f"k{number} in Elm" in contents[0]
            assert str(number) in contents[1]
            assert "amount" in contents[2]


@pytest.mark.parametrize("api", APIS)
def test_threads_that_render_a_toolset_first_render_the_same(api: Api) -> None:
    tools = declare()
    rendered = in_threads(lambda _: ADAPTERS[api].tools(tools.offer()))
    assert all(one == rendered[0] for one in rendered)
