"""A toolset too large for the prompt: the model searches it, and gets the tools that fit."""

# What is hard here: one loop for APIs that work in two ways.
#
#   |                        | APIs that load on demand           | all others                    |
#   |------------------------|------------------------------------|-------------------------------|
#   | a turn offers          | all tools, most of them deferred   | the tools always needed,      |
#   |                        |                                    | `find_tools`, what was found  |
#   | `find_tools` is called | as its API spells a search         | like any other tool           |
#   | its result             | references, or definitions         | names and descriptions        |
#   | a tool that was found  | is loaded by the API               | is in the next turn's offer   |
#
# The left half is the business of the adapters. Here is what both need: the tool that searches,
# whose result says in a way of no API what was found (`FoundTool`), and what is available in a
# turn. What was found isn't kept here, it is read from the conversation. So copies and dumps of
# a session know it, and one finder serves any number of sessions.

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Generic, TypeAlias, Union

from pydantic import Field
from typing_extensions import TypeVar

from lutumpy.core.items import FoundTool, Item, ToolResults
from lutumpy.errors import DeclarationError
from lutumpy.plain.preview import shorten
from lutumpy.plain.safe_text import safe_repr
from lutumpy.rounds.availability import SearchAvailability, ToolAvailability
from lutumpy.rounds.target import Target, transcript_of
from lutumpy.tools.declare import tool_fn, tool_input
from lutumpy.tools.search import Embed, search_tools
from lutumpy.tools.selectors import Selector
from lutumpy.tools.tool_input import ToolInput
from lutumpy.toolset import Toolset

__all__ = ["FIND_TOOLS", "FindTools", "FoundTools", "ToolFinder"]

TS = TypeVar("TS", bound=Toolset[Any])

FIND_TOOLS = "find_tools"
"""The name of the tool that finds others."""

FoundTools: TypeAlias = Union[list[FoundTool], str]
"""What a search gives: the tools that were found, or a text where there are none."""

_DESCRIPTION = (
    "Search for further tools. Most tools are not listed until they are found: before you say that "
    "something can't be done, search for a tool that does it. Tools that are found can be called "
    "in your next answer."
)
_QUERY = "What the tool should do, in a few words, or its name."


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": _QUERY}},
    "required": ["query"],
    "additionalProperties": False,
}


@tool_input(name=FIND_TOOLS, description=_DESCRIPTION, effect="read")
class FindTools(ToolInput[FoundTools]):
    """The input of `find_tools`, for toolsets that name the types of all their calls.

    Such a toolset has it as a member, and its dispatcher runs it by the finder::

        class AppTools(Toolset[ToolCall[ReadFile, str] | ToolCall[FindTools, FoundTools]]):
            read_file = tool(ReadFile)
            find_tools = tool(FindTools)

        dispatch.on(AppTools.find_tools)(finder.run)

    Attributes:
        query: What is searched for.
    """

    query: Annotated[str, Field(description=_QUERY)]


class ToolFinder(Generic[TS]):
    """Offers a few tools of a toolset, and lets the model search for the others::

        finder = ToolFinder(AppTools, always=[AppTools.ask_user])
        dispatch = Dispatcher(finder.toolset)
        options = {"tools": finder.toolset, "available": finder.available}
        await run_tools(session, llm, dispatch=dispatch, **options)

    With an API that loads tools on demand, the list of tools is the same in every request, so it
    stays in the provider's cache. With all others, what was found is added to it.

    Args:
        toolset: The toolset. Tools that are off stay off, unless `always` names them.
        always: The tools that are offered from the beginning.
        limit: The most tools that one search gives.
        embed: Makes vectors of texts, for who has a model that does: a search then takes the order
            that both give together, see `search_tools`. A plain function, called in the search.

    Raises:
        DeclarationError: The toolset has another tool of the name `find_tools`; or it names the
            types of its calls, and neither `FindTools` nor `DynamicInput` is among them.
        InvalidToolConstraints: A tool of `always` is of another toolset.
        ValueError: `limit` is not a whole number from 1.

    Attributes:
        toolset: The toolset with the tool `find_tools`, to offer and to dispatch.
        selector: The tool `find_tools`.
        always: The tools that are offered from the beginning.
        deferred: Those that can be found.
        limit: As given.
        embed: As given.
    """

    __slots__ = ("_names", "always", "deferred", "embed", "limit", "selector", "toolset")

    def __init__(
        self,
        toolset: type[TS],
        *,
        always: Iterable[Selector[TS, Any, Any]] = (),
        limit: int = 10,
        embed: Embed | None = None,
    ) -> None:
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise ValueError(f"limit={safe_repr(limit)} is not a whole number from 1")
        self.limit: int = limit
        self.embed: Embed | None = embed
        self.toolset: type[TS] = self._add_search(toolset)
        self.selector: Selector[TS, Any, Any] = self.toolset.selector(FIND_TOOLS)
        wanted = ToolAvailability.only(*always).resolve(self.toolset)
        needed = [selector for selector in wanted if selector != self.selector]
        self.always: tuple[Selector[TS, Any, Any], ...] = tuple(needed)
        self.deferred: tuple[Selector[TS, Any, Any], ...] = tuple(
            [
                selector
                for selector in self.toolset.default_selectors()
                if selector not in self.always and selector != self.selector
            ]
        )
        self._names = frozenset([selector.name for selector in self.deferred])

    def available(self, target: Target) -> ToolAvailability[TS]:
        """What a turn of this session may call.

        It goes to `available=` of a turn; `run_tools` takes the method itself.

        Args:
            target: The session, or its transcript.
        """
        return SearchAvailability(self.selector, self.always, self.deferred, self.found(target))

    def found(self, target: Target) -> tuple[Selector[TS, Any, Any], ...]:
        """The tools that were found in this session, in the order in which they were.

        Tools that this finder doesn't have are left out: a session may have been dumped by another
        release of the program.
        """
        known = transcript_of(target).encoded(_KEY, _FoundNames).names
        return tuple([self.toolset.selector(name) for name in known if name in self._names])

    def search(self, query: str) -> list[Selector[TS, Any, Any]]:
        """The tools that fit a query best, of those that can be found; see `search_tools`."""
        every = len(self.toolset.selectors())
        ranked = search_tools(self.toolset, query, limit=max(1, every), embed=self.embed)
        return [selector for selector in ranked if selector.name in self._names][: self.limit]

    def find(self, query: str) -> FoundTools:
        """The output of `find_tools`: what `search` finds, or a text where that is nothing."""
        specs = [selector.spec() for selector in self.search(query)]
        if not specs:
            return (
                f"No tool was found for {shorten(query, _QUOTED)!r}. Try other words, or fewer; "
                f"{len(self.deferred)} tools can be found."
            )
        return [FoundTool(s.name, s.description, s.schema, s.strict) for s in specs]

    async def run(self, input: FindTools) -> FoundTools:
        """A handler of `find_tools`, for the dispatcher of a toolset that has `FindTools`."""
        return self.find(input.query)

    def _add_search(self, toolset: type[TS]) -> type[TS]:
        """The toolset with the tool that searches."""
        if not hasattr(toolset, "__lutumpy_table__"):
            raise TypeError(f"ToolFinder takes a Toolset class, not {safe_repr(toolset)}")
        present = toolset.try_selector(FIND_TOOLS)
        if present is not None:
            if present.tool.input_type is FindTools:
                return toolset
            raise DeclarationError(
                f"{toolset.__name__} has a tool {FIND_TOOLS!r} of its own; that name is the "
                "finder's"
            )

        async def find_tools(query: Annotated[str, Field(description=_QUERY)]) -> FoundTools:
            return self.find(query)

        declared = tool_fn(name=FIND_TOOLS, description=_DESCRIPTION, effect="read")(find_tools)
        try:
            return toolset.extended(**{FIND_TOOLS: declared})
        except DeclarationError:
            # It names the types of its calls. If tools that are known at run time are among them,
            # this can be one more.
            if not any(selector.tool.is_dynamic for selector in toolset.selectors()):
                raise
        from lutumpy.tools.dynamic import DynamicTool  # not every program has its validator

        async def run(arguments: dict[str, Any]) -> FoundTools:
            return self.find(arguments["query"])

        known = DynamicTool(FIND_TOOLS, _DESCRIPTION, _SCHEMA, run=run, effect="read")
        return toolset.extended(**{FIND_TOOLS: known})

    def __repr__(self) -> str:
        return (
            f"<ToolFinder of {self.toolset.__name__}: {len(self.always)} tools always, "
            f"{len(self.deferred)} to be found>"
        )


# Under which key a transcript keeps the names, and how much of a query is quoted.
_KEY = "found_tools"
_QUOTED = 100


class _FoundNames:
    """The names of the tools that were found in a conversation; it takes each item once."""

    __slots__ = ("names",)

    def __init__(self) -> None:
        # A dictionary keeps their order.
        self.names: dict[str, None] = {}

    def add(self, item: Item) -> None:
        if not isinstance(item, ToolResults):
            return
        for result in item.results:
            if isinstance(result.content, str) or result.status != "ok":
                continue
            for part in result.content:
                if isinstance(part, FoundTool):
                    self.names.setdefault(part.name)

    def copy(self) -> _FoundNames:
        twin = _FoundNames()
        twin.names = self.names.copy()
        return twin
