"""Hooks for tools that are known at run time: by place, by name, by the registries of a base."""

import base64
import itertools
from typing import Any

import pytest
from dynamic_toolkit import AppTools, DataTools, weather_tool

from lutumpy import (
    Complete,
    DynamicInput,
    Hold,
    HookError,
    HookRegistrationError,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    ToolDecision,
    ToolMetadata,
    ToolResult,
    ToolRound,
    ToolRoundPlan,
    Toolset,
    hook_impl,
    nested,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Call, Reply, render

WEATHER, PLUGIN = weather_tool(), weather_tool("plugin")
Offered = AppTools.with_dynamic_tools(
    {AppTools.more: [WEATHER], AppTools.data[DataTools.plugins]: [PLUGIN]}
)


def start(*calls: Call, tools: Any = Offered) -> tuple[Session, ToolRound[Any]]:
    session = Session()
    session.push_user("Go.")
    reply = render(Reply(calls=calls), "openai_chat", number=1, model="m")
    outcome = tools.offer().read(OpenAIChat.response(reply), session)
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round


def weather(**arguments: Any) -> Call:
    return Call("get-weather", {"city": "Oslo", **arguments}, id="c1")


def reject(metadata: ToolMetadata, input: Any) -> ToolDecision[Any, Any]:
    return Reject("no")


def test_one_hook_decides_every_tool_of_a_place() -> None:
    hooks = AppTools.hooks()
    seen: list[str] = []

    @hooks.on(AppTools.more)
    def look(metadata: ToolMetadata, input: DynamicInput) -> ToolDecision[DynamicInput, Any]:
        seen.append(metadata.name)
        return Complete({"t": input.values["city"]})

    session, round = start(weather(), Call("search", {"query": "x"}, id="c2"))
    plan = round.apply_hooks_sync(hooks)
    assert seen == ["get-weather"]
    assert plan.handled[0].output == {"t": "Oslo"}
    assert [call.metadata.name for call in plan.pending] == ["search"]
    plan.commit(session, [call.complete("found") for call in plan.pending])
    # The same registry serves the next set of tools.
    other = AppTools.with_dynamic_tools({AppTools.more: [weather_tool("tides")]})
    _, round = start(Call("tides", {"city": "x"}, id="c1"), tools=other)
    plan = round.apply_hooks_sync(hooks)
    assert plan.handled
    plan.discard()
    assert seen == ["get-weather", "tides"]


def test_a_policy_for_a_name_holds_for_each_new_set_that_has_it() -> None:
    hooks = AppTools.hooks()
    hooks.on(Offered.more["get-weather"])(reject)
    again = AppTools.with_dynamic_tools({AppTools.more: [weather_tool(), weather_tool("b")]})
    _, round = start(weather(), Call("b", {"city": "x"}, id="c2"), tools=again)
    plan = round.apply_hooks_sync(hooks)
    assert [call.metadata.name for call in plan.rejected] == ["get-weather"]
    assert [call.metadata.name for call in plan.pending] == ["b"]
    plan.discard()


def test_general_hooks_of_the_declared_class_see_tools_that_were_added() -> None:
    seen: list[tuple[str, str]] = []

    class Watch:
        def __init__(self, label: str) -> None:
            self.label = label

        @hook_impl
        def any_tool_hook(self, metadata: ToolMetadata, call: Any) -> ToolDecision[Any, Any]:
            seen.append((self.label, metadata.name))
            return RunNormally()

    hooks = AppTools.hooks().with_hooks(Watch("outer"))
    hooks.nested(DataTools).register(Watch("inner"))
    calls = [weather(), Call("plugin", {"city": "x"}, id="c2"), Call("read_file", {"path": "x"})]
    _, round = start(*calls)
    round.apply_hooks_sync(hooks).discard()
    assert seen == [
        ("outer", "get-weather"),
        ("outer", "plugin"),
        ("inner", "plugin"),
        ("outer", "read_file"),
        ("inner", "read_file"),
    ]


def test_hooks_of_a_place_come_before_those_of_its_tools_and_after_the_general_ones() -> None:
    order: list[str] = []

    def noting(label: str) -> Any:
        def hook(metadata: ToolMetadata, input: Any) -> ToolDecision[Any, Any]:
            order.append(label)
            return RunNormally()

        return hook

    class General:
        @hook_impl
        def any_tool_hook(self, metadata: ToolMetadata, call: Any) -> ToolDecision[Any, Any]:
            order.append("general")
            return RunNormally()

    hooks = Offered.hooks()
    hooks.on(Offered.more["get-weather"])(noting("tool"))
    hooks.on(AppTools.more)(noting("place"))
    hooks.register(General())
    _, round = start(weather())
    round.apply_hooks_sync(hooks).discard()
    assert order == ["general", "place", "tool"]
    call = Offered.parse(ToolMetadata("c1", "get-weather", '{"city": "x"}'))
    hooks.apply_sync(call)
    assert order == ["general", "place", "tool"] * 2


def test_hooks_of_a_nested_place_are_found_by_it() -> None:
    hooks = AppTools.hooks()
    hooks.on(AppTools.data[DataTools.plugins])(reject)
    _, round = start(weather(), Call("plugin", {"city": "x"}, id="c2"))
    plan = round.apply_hooks_sync(hooks)
    assert [call.metadata.name for call in plan.rejected] == ["plugin"]
    plan.discard()


def test_an_edit_is_validated_again_whichever_way_it_is_made_Y8() -> None:
    good: list[Any] = [
        lambda input: RunNormally(DynamicInput({"city": "Bergen"})),
        lambda input: RunNormally.edited(city="Bergen"),
        lambda input: (input.values.__setitem__("city", "Bergen"), RunNormally())[1],
    ]
    for edit in good:
        hooks = AppTools.hooks()
        hooks.on(AppTools.more)(lambda metadata, input, edit=edit: edit(input))
        _, round = start(weather())
        plan = round.apply_hooks_sync(hooks)
        assert plan.pending[0].arguments == {"city": "Bergen"}
        assert plan.decisions()[0]["decision"] == "edited"
        plan.discard()
    wrong: list[Any] = [
        lambda input: RunNormally(DynamicInput({"city": 3})),
        lambda input: RunNormally(DynamicInput({"city": "x", "zz": 1})),
        lambda input: RunNormally.edited(days="many"),
        lambda input: (input.values.__setitem__("days", "many"), RunNormally())[1],
        lambda input: (input.values.__setitem__("days", True), RunNormally(input))[1],
        lambda input: (input.values.__setitem__("days", "many"), RunNormally.edited())[1],
        lambda input: RunNormally({"city": "x"}),
    ]
    for edit in wrong:
        hooks = AppTools.hooks()
        hooks.on(AppTools.more)(lambda metadata, input, edit=edit: edit(input))
        _, round = start(weather(days=1))
        with pytest.raises(HookError):
            round.apply_hooks_sync(hooks)
        assert round.calls[0].arguments == {"city": "Oslo", "days": 1}  # as decoded
        round.discard()


def test_what_a_person_is_asked_about_is_validated_as_what_runs_Y8() -> None:
    def hold(values: dict[str, Any], check: Any = None) -> ToolRoundPlan[Any]:
        tools = AppTools.with_dynamic_tools({AppTools.more: [weather_tool(validate=check)]})
        hooks = AppTools.hooks()

        @hooks.on(AppTools.more)
        def change(metadata: ToolMetadata, input: DynamicInput) -> Hold:
            input.values.update(values)  # type: ignore[attr-defined]
            return Hold("look at this")

        city = OSLO if check is not None else "Oslo"
        _, round = start(weather(city=city, days=1), tools=tools)
        try:
            return round.apply_hooks_sync(hooks)
        except HookError:
            assert round.calls[0].arguments["days"] == 1  # as decoded
            round.discard()
            raise

    for check, city in ((None, "Bergen"), (decode_city, BERGEN)):
        plan = hold({"city": city}, check)
        assert plan.held[0].arguments["city"] == "Bergen"
        plan = plan.decide({"c1": RunNormally()}, by="ann")
        assert plan.pending[0].arguments["city"] == "Bergen"
        plan.discard()
        for wrong in ({"days": "many"}, {"days": True}, {"zz": 1}):
            with pytest.raises(HookError, match=r"gave Hold\(\); .* the round is still open"):
                hold(wrong, check)
    for same in ({}, {"days": 1}):
        plan = hold(same)
        assert plan.decisions()[0]["decision"] == "held"
        assert plan.held[0].arguments == {"city": "Oslo", "days": 1}
        plan.discard()


def test_a_call_that_was_cleaned_passes_unchanged_Y8a() -> None:
    def to_upper(arguments: dict[str, Any]) -> dict[str, Any]:
        # What it gives doesn't fit the schema any more, and needn't.
        return {**arguments, "city": arguments["city"].upper(), "seen": True}

    cleaned = AppTools.with_dynamic_tools({AppTools.more: [weather_tool(validate=to_upper)]})
    hooks = AppTools.hooks()
    hooks.on(AppTools.more)(lambda metadata, input: RunNormally(input))
    _, round = start(weather(), tools=cleaned)
    plan = round.apply_hooks_sync(hooks)
    assert plan.pending[0].arguments == {"city": "OSLO", "seen": True}
    plan.discard()


def decode_city(arguments: dict[str, Any]) -> dict[str, Any]:
    """A check that can't be done twice: it decodes a value, and adds what the schema refuses."""
    city = base64.b64decode(arguments["city"], validate=True).decode()
    return {**arguments, "city": city, "seen": True}


OSLO, BERGEN = "T3Nsbw==", "QmVyZ2Vu"
PASSES: Any = lambda input: RunNormally()  # noqa: E731
EDITS: list[Any] = [
    lambda input: RunNormally.edited(city=BERGEN),
    lambda input: RunNormally(DynamicInput({**input.values, "city": BERGEN})),
    lambda input: RunNormally(DynamicInput(city=BERGEN, days=1)),
    lambda input: (input.values.__setitem__("city", BERGEN), RunNormally())[1],
    lambda input: (input.values.__setitem__("city", BERGEN), RunNormally(input))[1],
]
MORE_DAYS: list[Any] = [
    lambda input: RunNormally.edited(days=7),
    lambda input: RunNormally(DynamicInput({**input.values, "days": 7})),
    lambda input: (input.values.__setitem__("days", 7), RunNormally())[1],
]


def decided_by(*edits: Any, check: Any = decode_city) -> Any:
    tools = AppTools.with_dynamic_tools({AppTools.more: [weather_tool(validate=check)]})
    hooks = AppTools.hooks()
    for edit in edits:
        hooks.on(AppTools.more)(lambda metadata, input, edit=edit: edit(input))
    _, round = start(weather(city=OSLO, days=1), tools=tools)
    try:
        return round.apply_hooks_sync(hooks)
    except HookError:
        round.discard()
        raise


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_cleaned_once_whichever_way_it_is_made_Y8_Y8a(edit: Any) -> None:
    for edits, days in (([edit], 1), ([edit, PASSES], 1), *[([edit, e], 7) for e in MORE_DAYS]):
        plan = decided_by(*edits)
        arguments = plan.pending[0].arguments
        assert (arguments["city"], arguments["days"]) == ("Bergen", days)
        assert plan.decisions()[0]["decision"] == "edited"
        plan.discard()
    wrong: list[Any] = [
        lambda input: RunNormally.edited(city="no Base64"),
        lambda input: (input.values.__setitem__("days", "many"), RunNormally())[1],
        lambda input: (
            input.values.__setitem__("days", "many"),
            RunNormally(DynamicInput(input.values)),
        )[1],
    ]
    for last in wrong:
        with pytest.raises(HookError):
            decided_by(edit, last)


def test_what_a_check_gives_anew_each_time_passes_unchanged_Y8a() -> None:
    counted = itertools.count(1)
    copies: Any = lambda input: RunNormally(DynamicInput(input.values))  # noqa: E731

    def count(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"number": next(counted)}

    for number, edits in enumerate(([PASSES], [PASSES, PASSES], [copies], [copies, PASSES]), 1):
        plan = decided_by(*edits, check=count)
        assert plan.pending[0].arguments == {"number": number}
        plan.discard()


def test_a_person_decides_on_what_was_cleaned_before_the_plan_was_kept_P12_Y8a() -> None:
    tools = AppTools.with_dynamic_tools({AppTools.more: [weather_tool(validate=decode_city)]})
    decisions: list[tuple[Any, dict[str, Any]]] = [
        (RunNormally(), {"city": "Oslo", "days": 1}),
        (RunNormally.edited(days=7), {"city": "Oslo", "days": 7}),
        (RunNormally(DynamicInput(city="Oslo", days=7, seen=True)), {"city": "Oslo", "days": 7}),
        (RunNormally(DynamicInput(city=BERGEN)), {"city": "Bergen"}),
    ]
    for decision, arguments in decisions:
        session, round = start(weather(city=OSLO, days=1), tools=tools)
        dumped = round.apply_hooks_sync(lambda call: Hold()).suspend(scope="s")
        plan: ToolRoundPlan[Any] = ToolRoundPlan.resume(dumped, session, tools=tools, scope="s")
        plan = plan.decide({plan.held[0].metadata.id: decision}, by="ann")
        assert plan.pending[0].arguments == {**arguments, "seen": True}
        plan.discard()


def test_several_hooks_and_the_record_of_them() -> None:
    hooks = AppTools.hooks()

    @hooks.on(AppTools.more)
    def first(metadata: ToolMetadata, input: DynamicInput) -> ToolDecision[DynamicInput, Any]:
        return RunNormally()

    @hooks.on(AppTools.more)
    def second(metadata: ToolMetadata, input: DynamicInput) -> ToolDecision[DynamicInput, Any]:
        input.values["city"] = "Bergen"  # type: ignore[index]
        return RunNormally(input)

    _, round = start(weather())
    plan = round.apply_hooks_sync(hooks)
    (entry,) = plan.decisions()
    assert entry["decision"] == "edited"
    assert [hook["did"] for hook in entry["hooks"]] == ["passed", "edited"]
    plan.discard()


def test_description_hooks_word_tools_that_are_known_at_run_time() -> None:
    hooks = Offered.hooks()
    hooks.describe(Offered.more["get-weather"])(lambda definition: definition.description.upper())
    texts = hooks.description_overrides_sync()
    assert texts == {Offered.more["get-weather"]: "THE WEATHER OF A CITY."}
    offer = Offered.offer(describe=texts)
    assert [s.description for s in offer.specs if s.name == "get-weather"] == list(texts.values())


def test_results_of_added_tools_are_reviewed_also_where_only_their_name_is_known() -> None:
    seen: list[str] = []

    class Review:
        @hook_impl
        def any_result_hook(self, metadata: ToolMetadata, result: ToolResult) -> None:
            seen.append(metadata.name)

    hooks = AppTools.hooks()
    hooks.nested(DataTools).register(Review())
    session, round = start(Call("plugin", {"city": "x"}, id="c1"))
    handled = round.calls[0].handled({"t": 1})
    results = hooks.review_sync([handled])
    assert seen == ["plugin"]
    round.commit(session, results)


def test_the_registry_of_a_filled_class_reviews_results_as_that_of_its_base_does_H1() -> None:
    class Outer(Toolset):
        app = nested(AppTools)

    filled = Outer.with_dynamic_tools({Outer.app[AppTools.data[DataTools.plugins]]: [PLUGIN]})
    for tools in (Outer, filled):
        seen: list[str] = []

        class Notes:
            def __init__(self, place: str, seen: list[str]) -> None:
                self.place, self.seen = place, seen

            @hook_impl
            def any_tool_hook(self) -> ToolDecision[Any, Any]:
                self.seen.append(self.place)
                return RunNormally()

            @hook_impl
            def any_result_hook(self) -> None:
                self.seen.append(self.place)

        hooks: Any = tools.hooks()
        for place, registry in (
            ("outer", hooks),
            ("app", hooks.app),
            ("data", hooks.nested(DataTools)),
        ):
            registry.register(Notes(place, seen))
        _, round = start(Call("plugin", {"city": "x"}, id="c1"), tools=filled)
        plan = round.apply_hooks_sync(hooks)
        hooks.review_sync([call.complete("x") for call in plan.pending])
        plan.discard()
        assert seen == 2 * ["outer", "app", "data"]


def test_registries_that_were_copied_or_extended_keep_hooks_for_dynamic_tools() -> None:
    hooks = Offered.hooks()
    hooks.on(Offered.more["get-weather"])(reject)
    other = Offered.hooks()
    other.extend(hooks)
    for registry in (hooks.with_hooks(), other, Offered.hooks().with_extended(hooks)):
        _, round = start(weather())
        plan = round.apply_hooks_sync(registry)
        assert plan.rejected
        plan.discard()
    hooks.unregister(reject)
    _, round = start(weather())
    plan = round.apply_hooks_sync(hooks)
    assert plan.pending
    plan.discard()


def test_what_is_not_of_the_toolset_is_refused() -> None:
    other = Toolset.of("Other", [weather_tool()])
    hooks = AppTools.hooks()
    with pytest.raises(HookRegistrationError):
        hooks.on(other.selector("get-weather"))
    with pytest.raises(HookRegistrationError, match="not a dynamic"):
        other.hooks().on(AppTools.more)  # type: ignore[call-overload]
    with pytest.raises(HookRegistrationError):
        hooks.on(AppTools.more)(lambda call: None)  # type: ignore[arg-type, misc]
    _, round = start(weather(), tools=other)
    with pytest.raises(HookError, match="not a registry of Other"):
        round.apply_hooks_sync(hooks)
    round.discard()
    # A registry of one set decides no calls of another: it may lack policies.
    again = AppTools.with_dynamic_tools({AppTools.more: [weather_tool()]})
    _, round = start(weather(), tools=again)
    with pytest.raises(HookError, match="not a registry of"):
        round.apply_hooks_sync(Offered.hooks())
    round.discard()


def test_a_class_may_implement_no_hook_of_a_place_by_a_name_Y8b() -> None:
    class Plugin:
        @hook_impl
        def more_hook(self, metadata: ToolMetadata, input: Any) -> Any: ...

    with pytest.raises(HookRegistrationError, match="no hook slot 'more_hook'"):
        AppTools.hooks().register(Plugin())


async def test_async_hooks_decide_calls_of_dynamic_tools() -> None:
    hooks = AppTools.hooks()

    @hooks.on(AppTools.more)
    async def late(metadata: ToolMetadata, input: DynamicInput) -> ToolDecision[Any, Any]:
        return RunNormally.edited(days=2)

    _, round = start(weather())
    with pytest.raises(HookError, match="async"):
        round.apply_hooks_sync(hooks)
    plan = await round.apply_hooks(hooks)
    assert plan.pending[0].arguments == {"city": "Oslo", "days": 2}
    plan.discard()
