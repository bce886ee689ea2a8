"""What the own check of a tool was given and gave, so that edits don't clean values twice."""

# What is hard here
# -----------------
# A check may do what can't be done twice: decode a value, count something up, add a name that the
# schema doesn't have. Somebody who edits arguments sees what it gave, and leaves most of it. So the
# check is given an edit as if the model had written it:
#
#   a value in the edited arguments        what the check is given
#   -------------------------------------  ---------------------------------------------
#   is as the check gave it                what it was given then; nothing if it added it
#   is another one                         that one
#   isn't there, and the check gave it     nothing
#   isn't there, nor did the check give it what it was given then
#
# What it was given for a call is in the call's text. An edit has no text, so an input that was made
# of one carries both along: beside its fields, where comparisons, dumps and texts of a model don't
# look (as `functools.cached_property` does it). A dump doesn't have it. Then, and where a check
# gives something else each time, the check is given what it gave.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lutumpy.plain import json_values
from lutumpy.tools.dynamic_values import DynamicInput

__all__ = ["CheckedValues", "canonical_values", "carry_checked", "find_checked"]

_CARRIED = "_checked"


class CheckedValues(NamedTuple):
    """What a check was given, and what it gave. Texts, which no edit in place can change.

    Attributes:
        tool: What tells the tool whose check it was from others.
        before: What it was given, as JSON.
        after: What it gave, as `canonical_values`.
    """

    tool: str
    before: str
    after: str

    def is_kept(self, values: Mapping[str, Any]) -> bool:
        """Whether `values` are what the check gave."""
        return canonical_values(values) == self.after

    def before_check(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values that the check is given for `values`, an edit of what it gave."""
        before: dict[str, Any] = json_values.decode(self.before)
        after: dict[str, Any] = json_values.decode(self.after)
        restored = {name: value for name, value in before.items() if name not in after}
        for name, value in values.items():
            if name not in after or not _are_equal(value, after[name]):
                restored[name] = value
            elif name in before:
                restored[name] = before[name]
        return restored


def carry_checked(made: DynamicInput, tool: str, before: str) -> None:
    """Let the input that was made of an edit say what the check was given for it."""
    # A plain tuple of texts: a deep copy of it is the very same.
    vars(made)[_CARRIED] = (tool, before, canonical_values(made.values))


def find_checked(value: DynamicInput, tool: str) -> CheckedValues | None:
    """What an input says of the check of this tool; `None` if it wasn't made of an edit."""
    carried: tuple[str, str, str] | None = vars(value).get(_CARRIED)
    return None if carried is None or carried[0] != tool else CheckedValues(*carried)


def canonical_values(values: Mapping[str, Any]) -> str:
    """The same text for equal arguments. To Python, `True` equals 1; in JSON it doesn't."""
    return json_values.canonical_arguments(json_values.encode_text(values))


def _are_equal(one: Any, other: Any) -> bool:
    return canonical_values({"": one}) == canonical_values({"": other})
