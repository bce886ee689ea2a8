"""The toolset: a class whose members are tools.

Its tools come from `tools/`; `offer` and `hooks` are the doors to the floors between, which know a
toolset only as `BaseToolset`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, overload

from typing_extensions import Never, ParamSpec, Self, TypeVar

from lutumpy.core.items import TextMetadata, ToolMetadata
from lutumpy.errors import InvalidArgumentsError, MalformedArgumentsError
from lutumpy.rounds.availability import ToolAvailability, ToolRequirement
from lutumpy.rounds.offer import Offer, make_offer
from lutumpy.tools.arguments import Refused, decode_arguments, decode_text, repair_or_explain
from lutumpy.tools.calls import BaseToolCall, ToolCall
from lutumpy.tools.definition import ProviderSettings
from lutumpy.tools.dynamic_group import DynamicGroup
from lutumpy.tools.members import add_members, build_table
from lutumpy.tools.run_time_classes import (
    MAKE_TABLE,
    extend_toolset,
    fill_toolset,
    toolset_of,
)
from lutumpy.tools.selectors import (
    BaseToolset,
    ByTool,
    EmptyToolset,
    Selector,
    ToolsetTable,
    unknown_tool,
)
from lutumpy.tools.tool import compiled_tool
from lutumpy.tools.views import View

if TYPE_CHECKING:
    from lutumpy.hooks.tool_hooks import ToolHooks
    from lutumpy.tools.dynamic import DynamicTool
    from lutumpy.tools.dynamic_values import DynamicInput, DynamicOutput
    from lutumpy.tools.selectors import FunctionSelector
    from lutumpy.tools.tool import FunctionTool, HasTool, Tool

__all__ = ["NoTools", "Toolset"]

C = TypeVar("C", bound=BaseToolCall, default=BaseToolCall)
I = TypeVar("I")
O = TypeVar("O")
P = ParamSpec("P")


class Toolset(BaseToolset, Generic[C]):
    """Base of toolsets: a class whose members come from `tool()` and `nested()`.

    `class Desk(Toolset, tools=[find, pay])` has further declared functions and classes as members,
    behind those of its body. A checker doesn't see these as attributes; `Desk.selector(find)` names
    one, with its types.

    `Toolset[A | B]`, a union of `ToolCall[...]`, gives rounds exactly these calls, so that a
    checker can prove that every tool is handled. The class builder refuses a union that doesn't
    match the members, or in which a checker would take the calls of two tools for one another.
    """

    __lutumpy_table__: ClassVar[ToolsetTable]

    def __init_subclass__(
        cls, *, tools: Iterable[HasTool[Tool[Any, Any]] | type[Any]] = (), **kwargs: Any
    ) -> None:
        # Classes that are made at run time bring their table with them, or what it takes.
        make_table: Callable[[type[Any]], ToolsetTable] | None = kwargs.pop(MAKE_TABLE, None)
        super().__init_subclass__(**kwargs)
        add_members(cls, tools)
        cls.__lutumpy_table__ = make_table(cls) if make_table else build_table(cls, Toolset)

    @classmethod
    def __view__(cls) -> View[Self, C]:
        return View(cls)

    @overload
    @classmethod
    def selector(cls, tool: str, /) -> Selector[Self, Any, Any]: ...
    @overload
    @classmethod
    def selector(cls, tool: HasTool[FunctionTool[P, O]], /) -> FunctionSelector[Self, P, O]: ...
    @overload
    @classmethod
    def selector(cls, tool: HasTool[Tool[I, O]], /) -> Selector[Self, I, O]: ...
    @overload
    @classmethod
    def selector(cls, tool: type[I], /) -> Selector[Self, I, Any]: ...
    @classmethod
    def selector(cls, tool: Any, /) -> Any:
        """The tool of this name, or the one that this function or class was declared as.

        With the function or class it has the types, for tools of nested toolsets as well:
        `Support.selector(refund)` is `Support.orders[Orders.refund]`.

        Raises:
            UnknownToolError: The toolset has no such tool.
            DeclarationError: It is neither a name nor declared as a tool.
        """
        if isinstance(tool, str):
            return super().selector(tool)
        source = compiled_tool(tool)
        found = cls.try_selector(source.definition.name)
        if found is None or found.tool is not source:
            raise unknown_tool(cls, source.definition.name)
        return found

    @staticmethod
    def of(
        name: str, tools: Iterable[DynamicTool], *, prefix: str = ""
    ) -> type[Toolset[ToolCall[DynamicInput, DynamicOutput]]]:
        """A toolset of tools that are known at run time.

        Args:
            name: The name of the class.
            tools: Its tools, in order; there may be none.
            prefix: Put before each tool's name, which stays its `original_name`.

        Raises:
            DeclarationError: Two tools have one name, a name is too long with the prefix, or
                something isn't a `DynamicTool`.
        """
        return toolset_of(Toolset, name, tools, prefix)

    @classmethod
    def with_dynamic_tools(
        cls, tools: Mapping[DynamicGroup[Self], Iterable[DynamicTool]]
    ) -> type[Self]:
        """This toolset with tools in its `dynamic()` places, for one turn or a whole session.

        It is a new class, and this one stays as it is. Selectors and hook registries of this one
        are good for it. Its static tools come first, so that the beginning of the list of tools,
        which providers cache, stays the same.

        Args:
            tools: The tools of each place, `{AppTools.more: [weather]}`. A place that isn't named
                keeps its tools.

        Raises:
            DeclarationError: A key isn't a place of this toolset, or two tools have one name.
        """
        return fill_toolset(cls, tools)

    @classmethod
    def extended(cls, **members: Any) -> type[Self]:
        """This toolset with further members, for one turn or a whole session.

        It is a new class, and this one stays as it is. Selectors and hook registries of this one
        are good for it.

        Args:
            members: By name: a toolset, which is nested; a `DynamicTool` or a declared function or
                class; or what `tool()`, `nested()` and `dynamic()` give.

        Raises:
            DeclarationError: This toolset has a member of the name, two tools have one name, or the
                union of its calls has no branch for a new one.
        """
        return extend_toolset(cls, members, Toolset)

    @classmethod
    def parse(cls, metadata: ToolMetadata) -> C:
        """One call, decoded; every tool of the toolset is available.

        Raises:
            UnknownToolError: No tool has this name.
            MalformedArgumentsError: The arguments are not a JSON object.
            InvalidArgumentsError: The arguments don't fit the tool's input, or are free text
                (`ToolMetadata.of_text`) and the tool takes none.
        """
        try:
            selector = cls.__lutumpy_table__.by_name[metadata.name]
        except KeyError:
            raise unknown_tool(cls, metadata.name) from None
        except AttributeError:
            raise TypeError(f"parse takes a ToolMetadata, not {type(metadata).__name__}") from None
        # Nothing is between a good call and `validate_json`: this is `decode_arguments`,
        # written out. The checkers can't know that the class builder has held the union C against
        # the tools.
        text = metadata.arguments
        call: Any
        if type(metadata) is TextMetadata:
            decoded = decode_text(selector.tool, text)
        # Pydantic reads NaN and Infinity, and JSON has neither (rule C2b). Looking for a letter
        # first takes a third of the time.
        elif ("N" in text and "NaN" in text) or ("I" in text and "Infinity" in text):
            decoded = decode_arguments(selector.tool, text)
        else:
            try:
                call = ToolCall(metadata, selector.tool.decode(text), selector)
                return call  # type: ignore[no-any-return]
            except Exception as error:
                decoded = repair_or_explain(selector.tool, text, error)
        if isinstance(decoded, Refused):
            malformed = decoded.reason == "malformed_arguments"
            refused = MalformedArgumentsError if malformed else InvalidArgumentsError
            raise refused(metadata.name, metadata.id, decoded.detail)
        call = ToolCall(metadata, decoded.input, selector, decoded.repairs)
        return call  # type: ignore[no-any-return]

    @classmethod
    def offer(
        cls,
        available: ToolAvailability[Self] | None = None,
        require: ToolRequirement[Self] | None = None,
        describe: ByTool[Selector[Self, Any, Any], str] | None = None,
        parallel: bool = True,
        provider: ByTool[Selector[Self, Any, Any], ProviderSettings] | None = None,
        prefix_stable: bool = False,
    ) -> Offer[C]:
        """The tools of one turn: rendered for each API, and read back from a model's reply.

        Args:
            available: Which tools the model may call; by default those that aren't off.
            require: Whether it must call one; by default it need not.
            describe: Other descriptions for this turn; those of tools that are not offered are
                ignored.
            parallel: `False` asks the provider for at most one call.
            provider: Settings of tools for single APIs in this turn, by the tool and the API's
                name. It wins over what was declared, key by key; that of tools that are not offered
                is ignored.
            prefix_stable: `True` keeps the cached beginning of the prompt over turns that differ in
                `available`. The tools that are sent are then always the default ones, in
                declaration order, and after them those of `available` that are off. Which of them
                the model may call is said beside the list (`tool_choice` of the type
                `allowed_tools`, or `none`), by the APIs that can say it: those of OpenAI. An API
                without such a choice is sent the tools of `available` alone. Calls of other tools
                are `not_available` issues in any case, and the model sees the descriptions of all.

        Raises:
            InvalidToolConstraints: The constraints can't hold (rule A2), a selector belongs to
                another toolset, or an API isn't known or refuses what it would be told.
        """
        return make_offer(cls, available, require, describe, parallel, provider, prefix_stable)

    @classmethod
    def hooks(cls) -> ToolHooks[Self]:
        """A new, empty registry of hooks for this toolset."""
        from lutumpy.hooks.tool_hooks import ToolHooks  # not every program has hooks

        return ToolHooks(cls)


class NoTools(EmptyToolset, Toolset[Never]):
    """The toolset without tools: an offer of it offers nothing."""
