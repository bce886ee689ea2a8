"""What looks like a tool in the body of a toolset is one, or is refused (rule D11).

A toolset without tools isn't offered.
"""

from functools import cached_property, lru_cache, partial
from typing import Any

import pytest
from pydantic import BaseModel

from lutumpy import (
    DeclarationError,
    InvalidToolConstraints,
    NoTools,
    Session,
    ToolAvailability,
    ToolInput,
    Toolset,
    dynamic,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.errors import EmptyToolsetError
from lutumpy.testing import Reply, ScriptedModel


def plain(text: str) -> str:
    """Say it again."""
    return text


async def plain_async(text: str) -> str:
    """Say it again."""
    return text


declared = tool_fn(plain)


@tool_input(name="read", output=str)
class Read(BaseModel):
    """Read a file."""

    path: str


class Undecorated(ToolInput[str]):
    """Read a file."""

    path: str


class Inner(Toolset):
    read = tool(Read, output=str)


class Outer(Toolset):
    here = tool(declared)
    inner = nested(Inner)
    more = dynamic()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (plain, "it is a plain function.*@tool_fn.*it = tool"),
        (plain_async, "it is a plain function.*@tool_fn.*it = tool"),
        (lambda text: text, "it is a plain function"),
        (partial(plain, "a"), "it is a plain function"),
        (lru_cache(plain), "it is a plain function"),
        (len, "it is a plain function"),
        (declared, r"it is a tool without tool\(\): write it = tool"),
        (staticmethod(declared), r"it is a tool without tool\(\): write it = tool"),
        (Read, r"it is a tool's input without tool\(\): write it = tool\(Read\)"),
        (Undecorated, r"decorate it with @tool_input and write it = tool\(Undecorated\)"),
        (Inner, r"it is a toolset without nested\(\): write it = nested"),
        (Outer.here, r"Bad\.it names a tool or group of another toolset.*it = tool"),
        (Outer.inner, r"Bad\.it names a tool or group of another toolset.*it = nested"),
        (Outer.more, r"Bad\.it names a tool or group of another toolset.*it = nested"),
    ],
)
def test_what_looks_like_a_tool_is_never_ignored_D11(value: Any, says: str) -> None:
    says = says.replace("it is", r"Bad\.it is", 1) if says.startswith("it is") else says
    with pytest.raises(DeclarationError, match=says):
        type("Bad", (Toolset,), {"it": value})
    with pytest.raises(DeclarationError, match=says):
        type("Bad", (Inner,), {"it": value})  # beside tools that are inherited


def test_a_def_in_the_body_is_refused_D11() -> None:
    with pytest.raises(DeclarationError, match=r"Atlas\.population is a plain function"):

        class Atlas(Toolset):
            def population(city: str) -> int:  # type: ignore[misc]
                """How many people live in a city."""
                return 0

    with pytest.raises(DeclarationError, match=r"Atlas2\.population is a tool without tool\(\)"):

        class Atlas2(Toolset):
            @tool_fn
            def population(city: str) -> int:
                """How many people live in a city."""
                return 0


def test_what_is_no_tool_is_let_through_D11() -> None:
    class Mixin:
        def helper(self) -> int:
            return 3

    class Tools(Mixin, Toolset):
        @tool_input(output=str)
        class Find(BaseModel):
            """Find a file."""

            name: str

        class Found(BaseModel):
            """The output of a tool is a class like any other."""

            name: str

        class Group(Toolset):
            read = tool(Read, output=str)

        def _private(text: str) -> str:  # type: ignore[misc]
            return text

        @staticmethod
        def static(text: str) -> str:
            return text

        @classmethod
        def of_class(cls) -> str:
            return cls.__name__

        @property
        def prop(self) -> int:
            return 3

        @cached_property
        def cached(self) -> int:
            return 3

        _spare = declared
        alias = list[int]
        limit = 3
        find = tool(Find, output=str)
        group = nested(Group)
        inner_function = tool_fn(plain, name="inner")
        inner = tool(inner_function)

    assert [selector.name for selector in Tools.selectors()] == ["find", "read", "inner"]
    assert Tools.static("a") == "a"
    assert Tools.of_class() == "Tools"


def test_a_declared_tool_in_a_mixin_is_not_ignored_either_D11() -> None:
    class Mixin:
        say = declared

    with pytest.raises(DeclarationError, match=r"Mixin\.say is a tool without tool"):
        type("Tools", (Mixin, Toolset), {})


class Empty(Toolset):
    """A base of others."""


@pytest.mark.parametrize("kind", [DeclarationError, InvalidToolConstraints, EmptyToolsetError])
def test_a_toolset_without_a_tool_is_not_offered_D11(kind: type[Exception]) -> None:
    session = Session()
    session.push_user("Hello.")
    llm = ScriptedModel([Reply(text="Hello.")])
    with pytest.raises(kind, match=r"Empty has no tools to offer.*NoTools"):
        Empty.offer()
    with pytest.raises(kind, match="nothing was sent"):
        Empty.offer(available=ToolAvailability.all())
    with pytest.raises(kind):
        session.text_turn(llm, tools=Empty)
    with pytest.raises(kind):
        session.structured_turn(llm, int, tools=Empty)
    assert len(session.transcript) == 1


def test_no_tools_is_the_explicit_one_D11() -> None:
    class AlsoNone(NoTools):
        """As explicit as its base."""

    class Off(Toolset):
        read = tool(Read, output=str, off=True)

    for toolset in (NoTools, AlsoNone, Off):
        offer: Any = toolset.offer()
        assert offer.specs == ()


def test_the_base_of_toolsets_is_not_offered() -> None:
    with pytest.raises(TypeError, match="Toolset is the base of toolsets"):
        Session().text_turn(ScriptedModel([]), tools=Toolset)
