"""Toolsets and selectors (rules D1, D8, A1; the class builder)."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from lutumpy import (
    DeclarationError,
    InvalidArgumentsError,
    InvalidToolConstraints,
    MalformedArgumentsError,
    NoTools,
    Selector,
    ToolCall,
    ToolInput,
    ToolMetadata,
    Toolset,
    UnknownToolError,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.hooks import BaseToolCall


class Page(BaseModel):
    text: str


@tool_input(name="read")
class Read(ToolInput[Page]):
    """Read."""

    path: str


@tool_input(name="find", output=Page)
class Find(BaseModel):
    """Find."""

    query: str


@tool_fn
def echo(text: str) -> str:
    """Echo."""
    return text


class Deep(Toolset):
    find = tool(Find, output=Page)


class Files(Toolset):
    read = tool(Read, off=True)
    deep = nested(Deep)


class App(Toolset):
    echo = tool(echo)
    files = nested(Files)


@tool_input(name="drop", output=None)
class Drop(BaseModel):
    """Drop everything."""


class Admin(App):
    drop = tool(Drop, output=None)


def test_nested_tools_stand_in_place_and_keep_being_off_A1() -> None:
    assert [s.name for s in App.selectors()] == ["echo", "read", "find"]
    assert [s.name for s in App.default_selectors()] == ["echo", "find"]
    assert App.files.read == App.selector("read") == App.files[Files.read]
    assert App.files.deep.find == App.files[Files.deep.find] == App.selector("find")
    assert repr(App.files) == "<Files in App>"
    with pytest.raises(AttributeError, match="nope"):
        _ = App.files.nope
    with pytest.raises(UnknownToolError):
        App.files[Deep.find]  # type: ignore[index]


def test_a_group_that_is_off_hides_all_of_it_A1() -> None:
    class Hidden(Toolset):
        deep = nested(Deep, off=True)

    assert Hidden.default_selectors() == ()
    assert [s.name for s in Hidden.selectors()] == ["find"]


def test_inherited_toolsets_have_selectors_of_their_own() -> None:
    assert [s.name for s in Admin.selectors()] == ["echo", "read", "find", "drop"]
    assert Admin.echo != App.echo
    assert Admin.echo.toolset is Admin
    call = Admin.parse(ToolMetadata("c", "echo", '{"text": "x"}'))
    assert App.echo.matches(call)  # the same tool, whichever toolset names it
    assert not App.files[Files.read].matches(call)


def test_a_member_of_a_subclass_takes_the_place_of_the_inherited_one() -> None:
    class Other(App):
        echo = tool(Read)
        files = nested(Deep)

    assert [s.name for s in Other.selectors()] == ["read", "find"]


def test_selectors_are_values() -> None:
    assert pickle.loads(pickle.dumps(App.echo)) is App.echo
    assert pickle.loads(pickle.dumps(App.files[Files.read])) == App.files.read
    assert copy.deepcopy({App.echo: 1}) == {App.echo: 1}
    assert len({App.echo, App.selector("echo"), Admin.echo}) == 2
    assert str(App.echo) == "echo"
    assert App.echo != "echo"
    assert repr(App.echo) == "<Selector App:echo>"
    assert App.echo.definition.name == "echo"


def test_a_selector_field_is_the_enum_of_names() -> None:
    class Plan(BaseModel):
        first: Selector[App]
        then: list[Selector[App]] = []

    for mode in ("validation", "serialization"):
        schema = Plan.model_json_schema(mode=mode)  # type: ignore[arg-type]
        assert schema["properties"]["first"] == {
            "type": "string",
            "enum": ["echo", "read", "find"],
        } | ({"title": "First"} if "title" in schema["properties"]["first"] else {})
    plan = Plan.model_validate({"first": App.echo, "then": ["find"]})
    assert plan.then == [App.files.deep.find]
    assert plan.model_dump(mode="json") == {"first": "echo", "then": ["find"]}
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    for wrong in ("nope", 3, None, Deep.find):
        with pytest.raises(ValidationError, match="echo"):
            Plan.model_validate({"first": wrong})
    with pytest.raises(TypeError, match=r"Selector\[AppTools\]"):
        TypeAdapter(Selector)


def test_parse() -> None:
    call = App.parse(ToolMetadata("c", "read", '{"path": "x"}'))
    assert isinstance(call, ToolCall)
    assert (call.input.path, call.selector, call.metadata.id) == ("x", App.files.read, "c")
    with pytest.raises(UnknownToolError, match="find") as unknown:
        App.parse(ToolMetadata("c", "fnd", "{}"))
    assert unknown.value.near == ("find",)
    with pytest.raises(InvalidArgumentsError, match="path"):
        App.parse(ToolMetadata("c", "read", "{}"))
    with pytest.raises(MalformedArgumentsError, match="JSON"):
        App.parse(ToolMetadata("c", "read", "{"))
    for error in (unknown.value, InvalidArgumentsError("t", "c", "d")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_definitions() -> None:
    assert [d.name for d in App.definitions()] == ["echo", "read", "find"]
    assert [d.name for d in App.definitions_for([App.files.read, App.echo])] == ["read", "echo"]
    with pytest.raises(InvalidToolConstraints, match="Deep"):
        App.definitions_for([Deep.find])  # type: ignore[list-item]


def test_both_places_of_a_repeated_name_are_named_D1() -> None:
    with pytest.raises(DeclarationError, match=r"(?s)Twice\.files\.deep\.find.*Twice\.again"):

        class Twice(Toolset):
            files = nested(Files)
            again = tool(Find, output=Page)


@pytest.mark.parametrize(
    "name", ["selectors", "offer", "parse", "hooks", "register", "on", "apply", "nested"]
)
def test_members_named_like_methods_are_refused_D8(name: str) -> None:
    with pytest.raises(DeclarationError, match=name):
        type("Bad", (Toolset,), {name: tool(echo)})


def test_colliding_hook_slots_are_refused_D8() -> None:
    def named(name: str) -> Any:
        @tool_fn(name=name)
        def function() -> str:
            """Do."""
            return ""

        return tool(function)

    for first, second in (("a-b", "a_b"), ("a", "a_description")):
        with pytest.raises(DeclarationError, match="slot"):
            type("Bad", (Toolset,), {"one": named(first), "two": named(second)})
    with pytest.raises(DeclarationError, match="any_tool_hook"):
        type("Bad", (Toolset,), {"one": named("any_tool")})


def test_what_is_no_member_is_said_where_it_stands() -> None:
    with pytest.raises(DeclarationError, match=r"echo = tool\("):
        type("Bad", (Toolset,), {"echo": echo})
    with pytest.raises(DeclarationError, match="takes the place"):
        type("Bad", (App,), {"echo": 3})
    with pytest.raises(DeclarationError, match="Toolset class"):
        nested(BaseModel)  # type: ignore[type-var]
    with pytest.raises(DeclarationError, match="output"):
        tool(Find, output=str)
    with pytest.raises(TypeError, match="no instances"):
        App()


def test_a_union_has_to_match_the_members() -> None:
    class Fits(Toolset[ToolCall[Read, Page] | ToolCall[Find, Page] | ToolCall[BaseModel, str]]):
        read = tool(Read)
        deep = nested(Deep)
        echo = tool(echo)

    assert len(Fits.selectors()) == 3
    with pytest.raises(DeclarationError, match=r"no ToolCall for Missing\.find"):

        class Missing(Toolset[ToolCall[Read, Page]]):
            read = tool(Read)
            find = tool(Find, output=Page)

    with pytest.raises(DeclarationError, match=r"no member for ToolCall\[Find, Page\]"):

        class Surplus(Toolset[ToolCall[Read, Page] | ToolCall[Find, Page]]):
            read = tool(Read)

    with pytest.raises(DeclarationError, match="read"):

        class WrongOutput(Toolset[ToolCall[Read, str]]):
            read = tool(Read)

    with pytest.raises(DeclarationError, match=r"ToolCall\[Input, Output\]"):

        class NoCall(Toolset[Read]):  # type: ignore[type-var]
            read = tool(Read)

    with pytest.raises(DeclarationError, match=r"no ToolCall for Longer\.drop"):

        class Longer(Fits):  # its calls have the inherited type, which doesn't know the new one
            drop = tool(Drop, output=None)


def test_a_toolset_without_tools() -> None:
    assert NoTools.selectors() == ()
    assert NoTools.offer().specs == ()
    assert issubclass(ToolCall, BaseToolCall)


def test_a_declared_tool_says_its_name_and_whether_it_is_off() -> None:
    @tool_fn
    def look(key: str) -> str:
        """Look."""
        return key

    assert repr(tool(look)) == "tool('look')"
    assert repr(tool(look, off=True)) == "tool('look', off=True)"


@tool_fn(name="say-it")
def say(text: str) -> str:
    """Say."""
    return text


class Listed(Toolset, tools=[echo, say, Find, Read]):
    deep = nested(Toolset.of("None", []))


def test_tools_are_listed_in_the_class_statement() -> None:
    assert [s.name for s in Listed.selectors()] == ["echo", "say-it", "find", "read"]
    assert Listed.selector(echo) == Listed.selector("echo")
    assert Listed.selector(say).name == "say-it"
    assert Listed.selector(Find).matches(Listed.parse(ToolMetadata("c", "find", '{"query": "x"}')))
    member: Any = Listed
    assert member.say_it == Listed.selector(say)

    class More(Listed, tools=[Deeper]):
        pass

    assert [s.name for s in More.selectors()] == ["echo", "say-it", "find", "read", "deeper"]
    assert More.selector(echo) != Listed.selector(echo)


@tool_input(name="deeper", output=None)
class Deeper(BaseModel):
    """Deeper."""


def test_a_tool_of_a_nested_toolset_is_named_by_its_function_or_class() -> None:
    class Outer(Toolset):
        inner = nested(Listed)

    assert Outer.selector(echo) == Outer.inner.echo
    assert Outer.selector(Read) == Outer.inner[Listed.selector(Read)]


def test_what_a_list_of_tools_may_not_hold() -> None:
    with pytest.raises(DeclarationError, match="is not declared as a tool"):

        class Undeclared(Toolset, tools=[len]):  # type: ignore[list-item]
            pass

    with pytest.raises(DeclarationError, match=r"Twice\.echo is in the class body, and in tools="):

        class Twice(Toolset, tools=[echo]):
            echo = tool(echo)

    twice = r"tools= of TwiceListed holds two tools for the member 'echo'"
    with pytest.raises(DeclarationError, match=twice):

        class TwiceListed(Toolset, tools=[echo, echo]):
            pass

    @tool_fn
    def offer() -> None:
        """Offer."""

    with pytest.raises(DeclarationError, match="the name is taken"):

        class Taken(Toolset, tools=[offer]):
            pass


def test_a_selector_is_of_the_very_tool_that_was_declared() -> None:
    with pytest.raises(UnknownToolError):
        Listed.selector(Deeper)

    @tool_fn(name="echo")
    def other(text: str) -> str:
        """Another one of the same name."""
        return text

    with pytest.raises(UnknownToolError):
        Listed.selector(other)
    with pytest.raises(DeclarationError, match="is not declared as a tool"):
        Listed.selector(len)  # type: ignore[call-overload]
