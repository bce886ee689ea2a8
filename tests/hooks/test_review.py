"""`any_result_hook`: the content of results may be replaced before the commit (rules K1, K3).

Which call they answer, and how, may not.
"""

from __future__ import annotations

import gc
import warnings
from dataclasses import replace
from typing import Any

import pytest
from every_api import APIS
from hook_toolkit import DELETE, USER, WEATHER, AppTools, Forecast, User, results, start

from lutumpy import CommitError, HookError, ImagePart, TextPart, ToolMetadata, ToolResult, hook_impl
from lutumpy.hooks import ToolHooks


class Redact:
    @hook_impl
    def any_result_hook(self, metadata: ToolMetadata, result: ToolResult) -> ToolResult | None:
        assert isinstance(result.content, str)
        return replace(result, content=result.content.replace("secret", "***"))


def gives(value: Any) -> ToolHooks[AppTools]:
    class Gives:
        @hook_impl
        def any_result_hook(self, metadata: Any, result: Any) -> Any:
            return value(result)

    return AppTools.hooks().with_hooks(Gives())


@pytest.mark.parametrize("api", APIS)
async def test_content_is_replaced_and_status_and_pairing_stay(api: str) -> None:
    session, round = start(WEATHER, DELETE, USER, api=api)
    weather, delete, user = round.calls
    hooks = AppTools.hooks().with_hooks(Redact())
    reviewed = await hooks.review(
        [
            user.fail("no secret"),
            delete.reject("a secret place"),
            weather.complete(Forecast(text="secret")),
        ]
    )
    assert reviewed == hooks.review_sync(reviewed)
    round.commit(session, reviewed)
    assert results(session) == [
        ("call_1", "ok", '{"text":"***"}'),
        ("call_2", "rejected", "Tool call rejected: a *** place"),
        ("call_3", "error", "no ***"),
    ]


async def test_handled_and_rejected_calls_become_results() -> None:
    _, round = start(USER, WEATHER)
    user, _weather = round.calls
    plan = await round.apply_hooks(AppTools.hooks())
    reviewed = (
        AppTools.hooks().with_hooks(Redact()).review_sync([user.handled(User(name="secret"))])
    )
    assert reviewed[0].content == '{"name":"***"}'
    (only,) = await AppTools.hooks().review([round.calls[1].reject("why")])
    assert only.rejection_reason == "why"
    plan.discard()


async def test_hooks_are_threaded_in_order_and_nested_ones_see_their_tools_only() -> None:  # H1
    class Mark:
        def __init__(self, word: str) -> None:
            self.word = word

        @hook_impl
        async def any_result_hook(self, result: ToolResult) -> ToolResult:
            return replace(result, content=f"{result.content}{self.word}")

    class First(Mark):
        @hook_impl(tryfirst=True)
        async def any_result_hook(self, result: ToolResult) -> ToolResult:
            return replace(result, content=f"{result.content}{self.word}")

    hooks = AppTools.hooks()
    hooks.data.register(Mark(" nested"))
    hooks.register(Mark(" outer"))
    hooks.register(First(" first"))
    _, round = start(WEATHER, USER)
    reviewed = await hooks.review([call.fail("x") for call in round.calls])
    assert [r.content for r in reviewed] == ["x first outer", "x first outer nested"]
    round.discard()


@pytest.mark.parametrize(
    "change",
    [
        lambda r: replace(r, status="error"),
        lambda r: replace(r, status="rejected", rejection_reason="x"),
        lambda r: replace(r, rejection_reason="x"),
        lambda r: replace(
            r, metadata=ToolMetadata("call_2", r.metadata.name, r.metadata.arguments)
        ),
        lambda r: replace(
            r, metadata=ToolMetadata(r.metadata.id, "delete-file", r.metadata.arguments)
        ),
        lambda r: replace(r, content=None),
        lambda r: replace(r, content=3),
        lambda r: replace(r, content=["text"]),
        lambda r: replace(r, content=("text",)),
        lambda r: "text",
        lambda r: False,
    ],
)
async def test_a_hook_that_gives_anything_else_is_an_error_and_nothing_is_committed(
    change: Any,
) -> None:
    session, round = start(WEATHER)
    given = [round.calls[0].complete(Forecast(text="x"))]
    hooks = gives(change)
    message = r"any_result_hook on call 'call_1' of 'weather' .*nothing was committed"
    with pytest.raises(HookError, match=message):
        await hooks.review(given)
    with pytest.raises(HookError, match=message):
        hooks.review_sync(given)
    round.commit(session, given)


async def test_a_hook_that_raises_is_named_with_its_cause() -> None:  # H4
    def raises(result: Any) -> Any:
        raise ZeroDivisionError

    _, round = start(WEATHER)
    with pytest.raises(HookError, match="raised ZeroDivisionError") as caught:
        await gives(raises).review([round.calls[0].fail("x")])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    round.discard()


def test_the_sync_form_refuses_async_hooks_before_any_runs() -> None:
    seen: list[str] = []

    class Sync:
        @hook_impl
        def any_result_hook(self, metadata: Any) -> None:
            seen.append(metadata.id)

    class Async:
        @hook_impl
        async def any_result_hook(self, metadata: Any) -> None: ...

    hooks = AppTools.hooks().with_hooks(Sync())
    hooks.data.register(Async())
    _, round = start(WEATHER, USER)
    weather, user = [call.fail("x") for call in round.calls]
    with pytest.raises(HookError, match=r"Async\.any_result_hook of 'get_user' is async"):
        hooks.review_sync([weather, user])
    assert seen == []
    assert hooks.review_sync([weather]) == [weather]

    async def inner() -> Any: ...

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(HookError, match="gave an awaitable"):
            gives(lambda result: inner()).review_sync([weather])
        gc.collect()
    round.discard()


async def test_content_parts_can_take_the_place_of_text() -> None:
    session, round = start(WEATHER)
    parts = (TextPart("see"), ImagePart(url="https://example.com/a.png"))
    reviewed = await gives(lambda r: replace(r, content=parts)).review(
        [round.calls[0].complete(Forecast(text="x"))]
    )
    assert reviewed[0].content == parts
    round.commit(session, reviewed)


async def test_a_wrong_output_stays_wrong_until_its_content_is_replaced() -> None:  # K3
    session, round = start(WEATHER)
    wrong = [round.calls[0].complete("not a forecast")]
    for same in (
        gives(lambda r: None),
        gives(lambda r: ToolResult(r.metadata, r.content, r.status)),
    ):
        with pytest.raises(CommitError, match="doesn't fit"):
            round.commit(session, await same.review(wrong))
    round.commit(session, await gives(lambda r: replace(r, content="withheld")).review(wrong))
    assert results(session) == [("call_1", "ok", "withheld")]


async def test_a_review_uses_the_hooks_as_they_were_when_it_began() -> None:  # H5b
    hooks = AppTools.hooks()

    class Registers:
        @hook_impl
        async def any_result_hook(self, result: ToolResult) -> None:
            if len(hooks._tree.registry.plugins) == 1:
                hooks.register(Redact())

    hooks.register(Registers())
    _, round = start(WEATHER, DELETE)
    given = [call.fail("secret") for call in round.calls]
    assert [r.content for r in await hooks.review(given)] == ["secret", "secret"]
    assert [r.content for r in await hooks.review(given)] == ["***", "***"]
    round.discard()


async def test_what_is_no_result_is_refused() -> None:
    for thing in ("text", None, 3):
        with pytest.raises(
            TypeError, match="review takes ToolResult, HandledTool and RejectedToolCall"
        ):
            await AppTools.hooks().review([thing])  # type: ignore[list-item]
