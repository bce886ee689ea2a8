"""Availability and requirement are values (rules A1, A2).

Equal ones are one, and each shows what it is.
"""

from __future__ import annotations

from typing import Any

import pytest
from toolkit import A

from lutumpy import ToolAvailability, ToolInput, ToolRequirement, Toolset, tool, tool_input


@tool_input(name="b")
class B(ToolInput[str]):
    """B."""


class Tools(Toolset):
    a = tool(A)
    b = tool(B)


OFFERED: list[Any] = [
    lambda: ToolAvailability.default(),
    lambda: ToolAvailability.all(),
    lambda: ToolAvailability.only(),
    lambda: ToolAvailability.only(Tools.a),
    lambda: ToolAvailability.only(Tools.a, Tools.b),
    lambda: ToolAvailability.only(Tools.b, Tools.a),
    lambda: ToolAvailability.default_plus(Tools.a),
    lambda: ToolAvailability.default_plus(Tools.b),
]
REQUIRED: list[Any] = [
    lambda: ToolRequirement.optional(),
    lambda: ToolRequirement.at_least_one(),
    lambda: ToolRequirement.specific(Tools.a),
    lambda: ToolRequirement.specific(Tools.b),
]


@pytest.mark.parametrize("makers", [OFFERED, REQUIRED])
def test_equal_ones_are_one_and_others_differ(makers: list[Any]) -> None:
    made = [maker() for maker in makers]
    assert [maker() for maker in makers] == made
    assert len({*made, *[maker() for maker in makers]}) == len(made)
    assert all((one == other) is (one is other) for one in made for other in made)
    assert made[0] != "default"
    assert made[0] != object()


def test_each_reads_as_it_is_made() -> None:
    assert repr(ToolAvailability.default()) == "ToolAvailability.default()"
    assert (
        repr(ToolAvailability.default_plus(Tools.a))
        == f"ToolAvailability.default_plus({Tools.a!r})"
    )
    assert repr(ToolAvailability.all()) == "ToolAvailability.all()"
    assert (
        repr(ToolAvailability.only(Tools.a, Tools.b))
        == f"ToolAvailability.only({Tools.a!r}, {Tools.b!r})"
    )
    assert repr(ToolRequirement.optional()) == "ToolRequirement.optional()"
    assert repr(ToolRequirement.specific(Tools.a)) == f"ToolRequirement.specific({Tools.a!r})"
