"""Which code runs which tool, and what is refused before anything runs."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NewType, Protocol

import pytest
from execution_toolkit import App, Look, Other, Save, SlowTools, call, outcomes
from pydantic import BaseModel

from lutumpy import (
    DeclarationError,
    Skip,
    ToolInput,
    ToolMetadata,
    Toolset,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.execution import Dispatcher, IdempotencyKey, ToolExecutor

if TYPE_CHECKING:
    pass  # type: ignore[import-not-found]  # known to checkers only


class Index:
    def __init__(self, *words: str) -> None:
        self.words = words


class Subindex(Index):
    pass


class HasWords(Protocol):
    words: tuple[str, ...]


Limit = NewType("Limit", int)


@tool_fn(effect="read")
async def search(
    query: str, at_most: int = 3, *, index: Skip[Index], limit: Skip[Limit | None] = None
) -> list[str]:
    """Search."""
    return [word for word in index.words if query in word][: limit or at_most]


@tool_fn(effect="read", timeout=math.inf)
def search_plain(query: str, *, index: Skip[Index]) -> int:
    """Count what there is."""
    return len([word for word in index.words if query in word])


@tool_input(name="read_file", effect="read")
class ReadFile(ToolInput[str]):
    """Read a file."""

    path: str


@tool_input(name="drop")
class Drop(ToolInput[None]):
    """Drop it."""


class DataTools(Toolset):
    search_plain = tool(search_plain)
    drop = tool(Drop)


class Tools(Toolset):
    search = tool(search)
    read_file = tool(ReadFile)
    data = nested(DataTools)


@dataclass
class Everything:
    index: Index
    limit: Limit | None = None
    unused: str = ""


def parse(name: str, arguments: str, id: str = "a") -> Any:
    return Tools.parse(ToolMetadata(id, name, arguments))


def complete(dispatch: Dispatcher[Tools]) -> Dispatcher[Tools]:
    @dispatch.on(Tools.read_file)
    async def read(input: ReadFile) -> str:
        return f"text of {input.path}"

    @dispatch.on(Tools.data[DataTools.drop])
    async def drop(input: Drop) -> None:
        return None

    return dispatch


CONTEXTS: list[Any] = [
    {"index": Index("ab", "b"), "unused": 3},
    Everything(Index("ab", "b")),
    {"index": Subindex("ab", "b"), "limit": 5},
]


@pytest.mark.parametrize("context", CONTEXTS)
async def test_functions_run_themselves_with_values_of_the_context_and_others_by_handlers(
    context: Any,
) -> None:
    dispatch = complete(Dispatcher(Tools, context=context))
    asked = [
        parse("search", '{"query": "b"}', "a"),
        parse("read_file", '{"path": "x"}', "b"),
        parse("search_plain", '{"query": "a"}', "c"),
        parse("drop", "{}", "d"),
    ]
    results = await ToolExecutor().run(asked, dispatch)
    assert [result.output for result in results] == [["ab", "b"], "text of x", 1, None]


async def test_a_handler_takes_the_place_of_a_function_and_its_context_is_not_needed_then() -> None:
    dispatch = complete(Dispatcher(Tools))
    dispatch.on(Tools.search)(lambda input: ["other"])  # a plain function that is not blocking

    @dispatch.on(Tools.data[DataTools.search_plain])
    async def count(input: BaseModel) -> int:
        return 9

    results = await ToolExecutor().run([parse("search_plain", '{"query": "b"}')], dispatch)
    assert [result.output for result in results] == [9]


def test_a_dispatcher_that_is_not_complete_names_everything_that_is_missing() -> None:
    class Broken:
        @property
        def index(self) -> Index:
            raise OSError("no disk")

    dispatch = Dispatcher(Tools, context={"limit": "many"})

    @dispatch.on(Tools.read_file)
    async def read(input: ReadFile, *, files: Mapping[str, str], depth: float = 1.0) -> str:
        return files[input.path]

    with pytest.raises(DeclarationError) as caught:
        dispatch.close()
    assert str(caught.value).splitlines() == [
        "the dispatcher for Tools can't be used, it is still open and nothing was run:",
        "- 'search' needs the context value 'index' (Index), which is missing",
        "- 'search' needs the context value 'limit' as Limit | None, and it is str",
        "- 'read_file' needs the context value 'files' (collections.abc.Mapping[str, str]), "
        "which is missing",
        "- 'search_plain' needs the context value 'index' (Index), which is missing",
        "- nothing runs 'drop': register a handler with @dispatch.on(Tools.data.drop)",
    ]
    assert not dispatch.closed
    with pytest.raises(DeclarationError, match=r"reading it raised OSError\('no disk'\)"):
        Dispatcher(Tools, context=Broken()).close()
    # It is still open, so it can be completed.
    dispatch.on(Tools.data[DataTools.drop])(lambda input: None)
    whole = dispatch.with_context({"index": Index(), "files": {}, "depth": 2})
    whole.close()
    whole.close()
    assert whole.closed
    assert not dispatch.closed


async def test_nothing_runs_when_the_dispatcher_is_not_complete() -> None:
    ran: list[int] = []
    dispatch = Dispatcher(App)

    @dispatch.on(App.look)
    async def look(input: Look) -> int:
        ran.append(1)
        return 1

    with pytest.raises(DeclarationError, match=r"(?s)nothing runs 'save'.*'send'.*App\.slow\.wait"):
        await ToolExecutor().run([call("look")], dispatch)
    assert ran == []


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        (Index, [Index(), Subindex()], [None, "index", Index]),
        (Index | None, [Index(), None], [3]),
        (Annotated[Index, "a note"], [Index()], [3]),
        (int | str, [1, "a", True], [None, 2.5]),
        (float, [1, 2.5], ["a"]),
        (list[str], [[], ["a"], [1]], [(), {}]),
        (dict[str, Index], [{}], [[]]),
        (type[Index], [Index], [Index()]),
        (Callable[[int], int], [len, int], [3]),
        (Limit, [3], ["a"]),
        (HasWords, [Index(), 3], []),
        (Any, [3, None], []),
        ("Nowhere", [3, None], []),
        ("Index", [Index()], [3]),
    ],
)
def test_values_are_checked_where_their_class_is_known(
    annotation: Any, good: list[Any], bad: list[Any]
) -> None:
    async def handler(input: Any, value: Any) -> int:
        return 1

    handler.__annotations__["value"] = annotation

    def closed(value: Any) -> None:
        dispatch = Dispatcher(Other, context={"value": value})
        dispatch.on(Other.look)(handler)
        dispatch.close()

    for value in good:
        closed(value)
    for value in bad:
        with pytest.raises(DeclarationError, match="'look' needs the context value 'value' as"):
            closed(value)


async def test_names_of_the_function_around_are_found_and_kept_values_are_those_of_the_close() -> (
    None
):
    class Local:
        pass

    values: dict[str, Any] = {"local": Local(), "other": Local()}
    dispatch = Dispatcher(Other, context=values)
    seen: list[Any] = []

    async def look(
        input: Look,
        local: Local,
        /,
        *rest: Any,
        other: Local,
        key: IdempotencyKey,
        which: ToolMetadata,
        **more: Any,
    ) -> int:
        return 1

    with pytest.raises(DeclarationError, match="'local' can't be given by name"):
        dispatch.on(Other.look)(look)

    @dispatch.on(Other.look)
    async def look_again(
        input: Look,
        local: Local,
        *rest: Any,
        other: Local,
        key: IdempotencyKey,
        which: ToolMetadata,
        **more: Any,
    ) -> int:
        seen.append((local, other, type(key), which.id))
        return 1

    dispatch.close()
    first = dict(values)
    values.clear()
    asked: Any = Other.parse(ToolMetadata("a", "look", "{}"))
    assert outcomes(await ToolExecutor().run([asked], dispatch)) == ["ok"]
    assert seen == [(first["local"], first["other"], IdempotencyKey, "a")]
    with pytest.raises(DeclarationError, match="which is missing"):
        dispatch.with_context(values).close()
    bad = Dispatcher(Other, context={"local": 3, "other": Local()})
    bad.on(Other.look)(look_again)
    with pytest.raises(DeclarationError, match="Local, and it is int"):
        bad.close()


class Methods:
    def look(self, input: Any) -> int:
        return 1

    async def look_async(self, input: Any) -> int:
        return 2

    async def __call__(self, input: Any) -> int:
        return 3


async def _partial(more: int, input: Any) -> int:
    return more


@pytest.mark.parametrize(
    ("handler", "output"),
    [
        (Methods().look_async, 2),
        (Methods(), 3),
        (partial(_partial, 4), 4),
        (lambda *inputs: _partial(5, inputs[0]), 5),
        (Methods().look, 1),
    ],
)
async def test_anything_that_can_be_called_with_an_input_is_a_handler(
    handler: Any, output: int
) -> None:
    dispatch = Dispatcher(SlowTools)
    dispatch.on(SlowTools.wait)(handler)
    dispatch.on(SlowTools.send_slowly)(handler)
    asked: Any = SlowTools.parse(ToolMetadata("a", "wait", "{}"))
    (result,) = await ToolExecutor().run([asked], dispatch)
    assert result.output == output


def one_by_one(input: Any) -> Iterator[int]:
    yield 1


async def one_by_one_later(input: Any) -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("handler", [one_by_one, one_by_one_later], ids=["sync", "async"])
def test_a_generator_is_not_a_handler(handler: Any) -> None:
    dispatch = Dispatcher(App)
    with pytest.raises(DeclarationError, match="it is a generator"):
        dispatch.on(App.look)(handler)
    with pytest.raises(DeclarationError, match="it is a generator"):
        dispatch.otherwise(handler)
    dispatch.on(App.look)(lambda input: 1)
    dispatch.otherwise(lambda call: 1)


def test_wrong_registrations_are_refused_and_change_nothing() -> None:
    dispatch = Dispatcher(App)
    with pytest.raises(
        DeclarationError, match=r"Other\.look is a tool of another toolset than App"
    ):
        dispatch.on(Other.look)  # type: ignore[arg-type]
    with pytest.raises(
        DeclarationError, match=r"SlowTools\.wait is a tool of another toolset than App"
    ):
        dispatch.on(SlowTools.wait)  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="takes a selector of App, not 'look'"):
        dispatch.on("look")  # type: ignore[arg-type]
    for handler, why in [
        (3, "must be a function"),
        (lambda: 1, "it takes no input"),
        (lambda **kw: 1, "no input"),
    ]:
        with pytest.raises(DeclarationError, match=why):
            dispatch.on(App.look)(handler)  # type: ignore[call-overload]

    def look(input: Look) -> int:
        return 1

    assert dispatch.on(App.look)(look) is look
    early = dispatch.on(App.save)
    dispatch.on(App.save)(lambda input: 1)
    for register in (lambda: dispatch.on(App.look), lambda: early(lambda input: 1)):
        with pytest.raises(DeclarationError, match="has a handler already"):
            register()
    for selector in (App.send, App.slow.wait):
        dispatch.on(selector)(lambda input: 1)
    last = dispatch.on(App.slow.send_slowly)
    last(lambda input: 1)
    dispatch.close()
    for register in (lambda: dispatch.on(App.look), lambda: last(lambda input: 1)):
        with pytest.raises(DeclarationError, match="takes no more handlers"):
            register()
    with pytest.raises(DeclarationError, match="takes a Toolset class, not"):
        Dispatcher(Look)  # type: ignore[type-var]
    assert repr(dispatch) == "<Dispatcher for App, closed>"


async def test_calls_of_another_toolset_are_refused_before_anything_runs() -> None:
    dispatch = Dispatcher(Other)
    ran: list[int] = []

    @dispatch.on(Other.look)
    async def look(input: Look) -> int:
        ran.append(1)
        return 1

    asked: Any = Other.parse(ToolMetadata("a", "look", "{}"))
    with pytest.raises(
        DeclarationError,
        match=r"doesn't run the call 'b': 'save' is a tool of App; nothing was run",
    ):
        await ToolExecutor().run([asked, call("save", id="b")], dispatch)
    with pytest.raises(DeclarationError, match="runs no tools of App"):
        dispatch.check(App)
    dispatch.check(Other)
    assert ran == []
    assert Save.__name__ == "Save"
