"""What the base of an input class says of its output, through generic classes."""

from __future__ import annotations

from typing import Generic, TypeVar

import pytest

from lutumpy import DeclarationError, ToolInput, Toolset, tool, tool_input

T = TypeVar("T")


class Wide(ToolInput[int], Generic[T]):
    """Says its output, and leaves the type of a field open."""

    value: T


class Listing(ToolInput[list[T]], Generic[T]):
    """Leaves a part of its output open."""

    count: int


def test_an_output_that_has_nothing_to_fill_in_is_taken_as_it_is() -> None:
    @tool_input(name="narrow")
    class Narrow(Wide[str]):
        """A subclass that fills in the field."""

    class Tools(Toolset):
        narrow = tool(Narrow)

    assert Tools.narrow.definition.output_schema == {"type": "integer"}


def test_a_part_of_the_output_is_filled_in_by_a_subclass() -> None:
    @tool_input(name="names")
    class Names(Listing[str]):
        """A subclass that fills in the output."""

    class Tools(Toolset):
        names = tool(Names)

    schema = Tools.names.definition.output_schema
    assert schema == {"type": "array", "items": {"type": "string"}}


def test_an_output_that_is_left_open_is_not_stated() -> None:
    class Open(ToolInput[T], Generic[T]):
        """Says nothing."""

        count: int

    with pytest.raises(DeclarationError, match="output"):
        tool_input(name="open")(Open)
