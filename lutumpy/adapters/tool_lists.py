"""The tools of an offer: the values that `tools(offer)` of an adapter returns, and the error for
tools that an API refuses.
"""

# A list of tools is made and checked once for each offer, as its bytes are. What the caller gets is
# a copy as far as the tools' schemas, which are the tools' own: a copy of these too would cost
# twenty times as much. See decision 23.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lutumpy.core.tool_specs import ToolOffering
from lutumpy.errors import InvalidToolConstraints, Problem

__all__ = ["are_refused", "copy_nested_tools", "copy_tools", "listed_tools", "refuse_tools"]

Tools = list[dict[str, Any]]


def copy_tools(tools: Tools) -> Tools:
    """The tools in a list and dictionaries of its own."""
    return [{**tool} for tool in tools]


def copy_nested_tools(tools: Tools) -> Tools:
    """As `copy_tools`, for an API that has the fields of a tool under the name of its type."""
    copied: Tools = []
    for tool in tools:
        kind = tool["type"]  # a tool of the provider has its fields beside it
        copied.append({**tool, kind: {**tool[kind]}} if kind in tool else {**tool})
    return copied


def listed_tools(
    offer: ToolOffering,
    key: str,
    make: Callable[[], Tools],
    copy: Callable[[Tools], Tools] = copy_tools,
) -> Tools:
    """The tools of an offer, in a list and dictionaries of its own; their schemas are shared.

    Args:
        offer: The tools of a turn.
        key: Tells apart the ways to write them: the API, and the options that it depends on.
        make: Makes and checks the list when it is first asked for. What it raises is raised, and
            nothing is kept.
        copy: Copies tools of the API as far as their schemas. It is called for the whole list, as
            a call for each tool takes longer than the copy.
    """
    kept = offer.listed.get(key)
    if kept is None:
        kept = offer.listed[key] = make()
    return copy(kept)


def refuse_tools(
    problems: Iterable[Problem],
    api: str,
    *,
    ignore: str = "",
    own_names: Mapping[str, str] = {},
) -> None:
    """Raise for tools that an API is sure to refuse: every request with them would fail.

    Args:
        problems: What its rules find in the tools.
        api: What the API is called in the error.
        ignore: A rule that doesn't count. Keys come from `provider=` alone, and one that isn't
            known may be newer than this.
        own_names: The toolset's names of tools, by the names that the API is told in their place.

    Raises:
        InvalidToolConstraints: a problem has the certainty "refused"; the text names the tools.
    """
    sure = [each for each in problems if each.certainty == "refused" and each.rule != ignore]
    if not sure:
        return
    names = dict.fromkeys([own_names.get(name, name) for each in sure for name in each.tools])
    what = f"the tool {', '.join(names)}" if names else "the tools offered"
    reasons = "; ".join(dict.fromkeys([each.message for each in sure]))
    raise InvalidToolConstraints(f"{api} refuses {what}: {reasons}")


def are_refused(problems: Iterable[Problem], *, ignore: str = "") -> bool:
    """Whether `refuse_tools` raises for these problems."""
    try:
        refuse_tools(problems, "", ignore=ignore)
    except InvalidToolConstraints:
        return True
    return False
