"""`provider=` and `annotations=`: what declarations, members and turns take, copy and refuse."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, RootModel, field_validator

from lutumpy import (
    DeclarationError,
    InvalidToolConstraints,
    Session,
    ToolAvailability,
    ToolInput,
    ToolOptions,
    Toolset,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.apis import ApiRow, add_api, remove_api
from lutumpy.testing import Reply, ScriptedModel

CLAUDE = "anthropic_messages"


def search(query: str, limit: int = 3) -> str:
    """Search."""
    return query * limit


def declared(provider: Any = None, **settings: Any) -> Any:
    return tool_fn(search, provider=provider, **settings)


def rendered(offer: Any) -> list[dict[str, Any]]:
    return AnthropicMessages.tools(offer)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=6,
)


# ---------------------------------------------------------------- what is kept


@given(st.dictionaries(st.sampled_from("abc"), json_values, min_size=1))
def test_options_keep_a_copy_of_equal_json(given_settings: dict[str, Any]) -> None:
    provider = {"some_api": given_settings}
    before = copy.deepcopy(provider)
    options = ToolOptions(provider=provider, annotations=given_settings)
    given_settings.clear()
    provider.clear()
    assert options.provider == before
    assert options.annotations == before["some_api"]
    assert options == ToolOptions(provider=before, annotations=before["some_api"])
    assert hash(options) == hash(ToolOptions())
    assert pickle.loads(pickle.dumps(options)) == options
    assert replace(options, timeout=3.0).provider == before


def test_options_with_other_settings_or_annotations_are_not_equal() -> None:
    assert ToolOptions(provider={"x": {"a": 1}}) != ToolOptions(provider={"x": {"a": 2}})
    assert ToolOptions(annotations={"a": 1}) != ToolOptions(annotations={"a": 2})
    assert ToolOptions(provider={}) == ToolOptions(provider={"x": {}}) == ToolOptions()


def test_annotations_are_part_of_the_definition_and_never_sent() -> None:
    hinted = declared(annotations={"title": "Search", "readOnlyHint": True})
    assert hinted.options.annotations == {"title": "Search", "readOnlyHint": True}

    class Hinted(Toolset):
        search = tool(hinted)

    class Bare(Toolset):
        search = tool(declared())

    assert rendered(Hinted.offer()) == rendered(Bare.offer())
    assert Hinted.search.definition != Bare.search.definition


class Loop(dict[str, Any]):
    """Holds itself."""


LOOP = Loop()
LOOP["x"] = LOOP


@pytest.mark.parametrize(
    "provider",
    [
        3,
        "anthropic_messages",
        [("anthropic_messages", {})],
        {3: {}},
        {CLAUDE: None},
        {CLAUDE: "defer_loading"},
        {CLAUDE: {3: True}},
        {CLAUDE: {"x": {1, 2}}},
        {CLAUDE: {"x": [object()]}},
        {CLAUDE: {"x": float("nan")}},
        {CLAUDE: {"x": b"bytes"}},
        {CLAUDE: LOOP},
    ],
)
def test_what_is_not_json_by_api_is_refused_wherever_it_is_given(provider: Any) -> None:
    with pytest.raises(DeclarationError, match="provider="):
        ToolOptions(provider=provider)
    with pytest.raises(DeclarationError, match="provider="):
        declared(provider)
    with pytest.raises(DeclarationError, match="'search': provider="):
        tool(declared(), provider=provider)

    class Tools(Toolset):
        search = tool(declared())

    with pytest.raises(InvalidToolConstraints, match="'search': provider="):
        Tools.offer(provider={Tools.search: provider})


@pytest.mark.parametrize("annotations", [3, "x", {3: 1}, {"a": {1}}, {"a": float("inf")}])
def test_annotations_are_a_json_object(annotations: Any) -> None:
    with pytest.raises(DeclarationError, match="annotations="):
        declared(annotations=annotations)


# ------------------------------------------------------------------- the merge


def test_a_turn_wins_over_a_member_and_a_member_over_the_declaration_key_by_key() -> None:
    told_most = declared({CLAUDE: {"x": 1, "y": 1, "z": 1}, "openai_chat": {"a": 1}})

    class Bare(Toolset):
        search = tool(told_most)

    class Mine(Toolset):
        search = tool(told_most, provider={CLAUDE: {"y": 2, "z": 2}})

    def told(offer: Any) -> dict[str, Any]:
        (one,) = rendered(offer)
        return {key: one[key] for key in "xyz"}

    assert told(Bare.offer()) == {"x": 1, "y": 1, "z": 1}
    assert told(Mine.offer()) == {"x": 1, "y": 2, "z": 2}
    assert told(Mine.offer(provider={Mine.search: {CLAUDE: {"z": 3}}})) == {"x": 1, "y": 2, "z": 3}
    assert told(Mine.offer()) == {"x": 1, "y": 2, "z": 2}
    assert told_most.options.provider[CLAUDE] == {"x": 1, "y": 1, "z": 1}
    options = Mine.search.definition.options.provider
    assert options == {CLAUDE: {"x": 1, "y": 2, "z": 2}, "openai_chat": {"a": 1}}
    assert Mine.definitions() == (Mine.search.definition,)


def test_a_nested_tool_keeps_the_settings_of_its_member() -> None:
    class Inner(Toolset):
        search = tool(declared(), provider={CLAUDE: {"x": 1}})

    class Outer(Toolset):
        inner = nested(Inner)

    assert rendered(Outer.offer()) == rendered(Inner.offer())
    assert rendered(Outer.offer())[0]["x"] == 1
    turn = {Outer.inner[Inner.search]: {CLAUDE: {"x": 2}}}
    assert rendered(Outer.offer(provider=turn))[0]["x"] == 2
    assert Inner.search.tool is Outer.inner[Inner.search].tool


# ---------------------------------------------------------- what an API refuses


@pytest.mark.parametrize(
    ("api", "settings", "why"),
    [
        (CLAUDE, {"name": "x"}, "'name' can't be set"),
        (CLAUDE, {"description": "x"}, "describe="),
        (CLAUDE, {"input_schema": {}}, "'input_schema'"),
        (CLAUDE, {"strict": True}, "strict="),
        (CLAUDE, {"type": "memory_20250818", "name": "memory"}, "'name' can't be set"),
        (CLAUDE, {"type": "memory_20250818"}, "declare it with name='memory'"),
        (CLAUDE, {"type": "bash_20250124"}, "name='bash'"),
        (CLAUDE, {"type": "text_editor_20250124"}, "name='str_replace_editor'"),
        (CLAUDE, {"type": "text_editor_20250728"}, "name='str_replace_based_edit_tool'"),
        (CLAUDE, {"type": "computer_20251124"}, "name='computer'"),
        (CLAUDE, {"type": "custom"}, "leave 'type' out"),
        (CLAUDE, {"type": "web_search_20250305"}, "run by the provider"),
        (CLAUDE, {"type": "code_execution_20260120"}, "run by the provider"),
        (CLAUDE, {"type": "tool_search_tool_bm25"}, "run by the provider"),
        (CLAUDE, {"type": "computer_toolset_20260801"}, "a set of tools"),
        (CLAUDE, {"type": "mcp_toolset"}, "a set of tools"),
        (CLAUDE, {"type": 3}, "the name of a type"),
        (CLAUDE, {"type": None}, "the name of a type"),
        (CLAUDE, {"input_examples": {"query": "x"}}, "a list of inputs"),
        ("openai_responses", {"parameters": {}}, "'parameters'"),
        ("openai_responses", {"strict": False}, "strict="),
        ("openai_responses", {"type": "shell"}, "extra="),
        ("openai_responses", {"type": "function"}, "leave 'type' out"),
        ("openai_chat", {"function": {}}, "'function'"),
        ("openai_chat", {"name": "x"}, "'name'"),
        ("openai_chat", {"type": "custom"}, "not calls of a function"),
    ],
)
def test_what_the_adapter_writes_and_types_that_no_tool_can_have_are_refused_early_C9(
    api: str, settings: Any, why: str
) -> None:
    with pytest.raises(DeclarationError, match=why) as at_declaration:
        declared({api: settings})
    assert "search" in str(at_declaration.value)
    with pytest.raises(DeclarationError, match=why):
        tool(declared(), provider={api: settings})

    class Tools(Toolset):
        search = tool(declared())

    with pytest.raises(InvalidToolConstraints, match=why) as at_turn:
        Tools.offer(provider={Tools.search: {api: settings}})
    assert "'search'" in str(at_turn.value)
    assert Tools.offer().offered == {"search"}


def test_an_unknown_key_is_sent() -> None:
    class Tools(Toolset):
        search = tool(declared({CLAUDE: {"quite_new": {"a": [1]}}}))

    assert rendered(Tools.offer())[0]["quite_new"] == {"a": [1]}


class Level(BaseModel):
    depth: int = 1


class Deep(ToolInput[str]):
    """Dig."""

    where: str
    level: Level | None = None
    kind: Literal["a", "b"] = "a"

    @field_validator("where")
    @classmethod
    def known(cls, value: str) -> str:
        if value == "nowhere":
            raise ValueError("secret")
        return value


@pytest.mark.parametrize(
    "example",
    [{"where": "x"}, {"where": "x", "level": {"depth": 2}}, {"where": "x", "level": None}],
)
def test_examples_that_are_inputs_are_taken(example: Any) -> None:
    deep = type("Deep", (Deep,), {"__doc__": "Dig."})
    tool_input(name="dig", output=str, provider={CLAUDE: {"input_examples": [example]}})(deep)


@pytest.mark.parametrize(
    ("example", "why"),
    [
        ({}, "where: Field required"),
        ({"where": 3}, "where: Input should be a valid string"),
        ({"where": "x", "level": {"depth": "2"}}, r"level\.depth: Input should be a valid integer"),
        ({"where": "x", "kind": "c"}, "kind"),
        ({"where": "x", "other": 1}, "other: Extra inputs are not permitted"),
        ("x", "it is not an object"),
        (["x"], "it is not an object"),
        ({"where": "nowhere"}, "where"),
    ],
)
def test_examples_that_are_no_inputs_are_refused_where_they_are_given_C9(
    example: Any, why: str
) -> None:
    deep = type("Deep", (Deep,), {"__doc__": "Dig."})
    provider = {CLAUDE: {"input_examples": [{"where": "x"}, example]}}
    with pytest.raises(DeclarationError, match=rf"(?s)class Deep.*'dig'.*\[1\].*{why}"):
        tool_input(name="dig", output=str, provider=provider)(deep)
    plain = tool_input(name="dig", output=str)(deep)

    class Tools(Toolset):
        dig = tool(plain)

    with pytest.raises(InvalidToolConstraints, match=rf"'dig'.*\[1\].*{why}"):
        Tools.offer(provider={Tools.dig: provider})


class One(BaseModel):
    """One."""

    kind: Literal["one"]


class Two(BaseModel):
    """Two."""

    kind: Literal["two"]
    n: int


def test_examples_of_a_wrapped_input_are_wrapped_D6() -> None:
    def union() -> Any:
        return type("Pick", (RootModel[One | Two],), {"__doc__": "Pick."})

    def declare(example: Any) -> Any:
        provider = {CLAUDE: {"input_examples": [example]}}
        return tool_input(name="pick", output=str, provider=provider)(union())

    declare({"input": {"kind": "two", "n": 1}})
    with pytest.raises(DeclarationError, match="is not an input"):
        declare({"kind": "two", "n": 1})


# ------------------------------------------------------------- unknown API names


def test_a_name_that_no_api_has_is_refused_when_the_tool_is_offered() -> None:
    # Not before: the program may add the API after the declaration.
    class Tools(Toolset):
        search = tool(declared({"antropic": {"defer_loading": True}}))
        other = tool(declared(name="other"))

    with pytest.raises(InvalidToolConstraints, match=r"'search'.*'antropic'.*openai_chat"):
        Tools.offer()
    assert Tools.offer(available=ToolAvailability.only(Tools.other)).offered == {"other"}
    turn = {Tools.other: {"nope": {"a": 1}}}
    with pytest.raises(InvalidToolConstraints, match="'nope'"):
        Tools.offer(available=ToolAvailability.only(Tools.other), provider=turn)


def test_an_api_that_was_added_later_gets_its_settings() -> None:
    class Tools(Toolset):
        search = tool(declared({"added_later": {"a": 1}}))

    with pytest.raises(InvalidToolConstraints):
        Tools.offer()
    add_api(
        ApiRow(
            name="added_later",
            title="Added",
            family="added",
            adapter="json:JSONEncoder",
            rules="json",
            reader="json:loads",
        )
    )
    try:
        (spec,) = Tools.offer().specs
        assert spec.provider == {"added_later": {"a": 1}}
    finally:
        remove_api("added_later")


# ------------------------------------------------------------------------- turns


class Tools(Toolset):
    search = tool(declared())
    off = tool(declared(name="off"), off=True)


class Others(Toolset):
    search = tool(declared())


@pytest.mark.parametrize(
    "provider",
    [{Others.search: {}}, {"search": {CLAUDE: {"a": 1}}}, "x", [Tools.search]],
)
def test_settings_of_a_turn_are_by_selectors_of_its_toolset(provider: Any) -> None:
    session = Session()
    session.push_user("?")
    llm = ScriptedModel([], api=CLAUDE)
    with pytest.raises(InvalidToolConstraints):
        Tools.offer(provider=provider)
    with pytest.raises(InvalidToolConstraints):
        session.text_turn(llm, tools=Tools, provider=provider)
    with pytest.raises(InvalidToolConstraints):
        session.structured_turn(llm, Level, tools=Tools, provider=provider)
    assert llm.requests == []


def test_settings_of_a_turn_need_tools() -> None:
    options: Any = {"provider": {Tools.search: {CLAUDE: {"a": 1}}}}
    with pytest.raises(TypeError, match="provider= need"):
        Session().text_turn(ScriptedModel([]), **options)


def test_settings_of_tools_that_are_not_in_the_turn_are_checked_for_form_and_ignored_A3() -> None:
    bare = rendered(Tools.offer())
    assert rendered(Tools.offer(provider={Tools.off: {CLAUDE: {"a": 1}}})) == bare
    bad: Any = {Tools.off: 3}
    with pytest.raises(InvalidToolConstraints):
        Tools.offer(provider=bad)


def test_every_turn_takes_settings() -> None:
    session = Session()
    session.push_user("?")
    llm = ScriptedModel([Reply("yes"), Reply('{"depth": 3}'), Reply("no")], api=CLAUDE)
    eager = {Tools.search: {CLAUDE: {"eager_input_streaming": True}}}
    session.text_turn(llm, tools=Tools, provider=eager).collect_sync()
    session.push_user("?")
    session.structured_turn(llm, Level, tools=Tools, provider=eager).collect_sync()
    session.push_user("?")
    session.text_turn(llm, tools=Tools).collect_sync()
    told = [body["tools"][0].get("eager_input_streaming") for body in llm.requests]
    assert told == [True, True, None]


def test_an_example_that_a_validator_of_the_users_raises_at_is_refused() -> None:
    class Odd(ToolInput[str]):
        """Odd."""

        n: int

        @field_validator("n")
        @classmethod
        def check(cls, value: int) -> int:
            raise KeyError("secret")

    provider: Any = {CLAUDE: {"input_examples": [{"n": 1}]}}
    with pytest.raises(DeclarationError, match="is not an input of it") as caught:
        tool_input(name="odd", provider=provider)(Odd)
    assert "secret" not in str(caught.value)
