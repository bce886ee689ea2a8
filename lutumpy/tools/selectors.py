"""One tool of a toolset as a value with types, and the base class of the toolsets it belongs to."""

# A selector knows its toolset, and a toolset its selectors, so the two are together here. A
# selector also recognizes calls (`matches`), and a call knows its selector: so `selectors` and
# `calls` name each other, for their types alone.
#
# The three parameters of `Selector[TS, I, O]` are what a checker needs to know of a tool: its
# toolset, so that a tool of another one is refused; its input and its output, so that `matches` can
# give them to a call. A checker infers all three from how a member is read (`Tool.__get__`), so
# nothing has to be written down, and no plugin is needed.

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Protocol,
    TypeGuard,
    cast,
    get_args,
    overload,
)

from pydantic import BaseModel
from typing_extensions import ParamSpec, Self, TypeIs, TypeVar

from lutumpy.core.tool_specs import ToolSpec
from lutumpy.errors import InvalidToolConstraints, UnknownToolError
from lutumpy.plain import json_values
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.definition import ToolDef
from lutumpy.tools.edits import replaced_input, run_with
from lutumpy.tools.provider_settings import offered_settings

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

    from lutumpy.tools.calls import BaseToolCall, HandledTool, RejectedToolCall, ToolCall

TS = TypeVar("TS", bound="BaseToolset")
I = TypeVar("I", default=Any)
O = TypeVar("O", default=Any)
P = ParamSpec("P")
R = TypeVar("R")
S_co = TypeVar("S_co", covariant=True)
V_co = TypeVar("V_co", covariant=True)


class Selector(Generic[TS, I, O]):
    """One tool of a toolset. Hashable, comparable, picklable; `str()` is its name.

    `Selector[AppTools]` is also a pydantic field type: its JSON Schema is the enum of the toolset's
    tool names.

    Attributes:
        toolset: The toolset class.
        name: The tool's name on the wire.
        tool: What the declaration was compiled to.
    """

    __slots__ = ("_definition", "_original", "_overridden", "_spec", "name", "tool", "toolset")

    def __init__(
        self, toolset: type[TS], tool: CompiledTool, definition: ToolDef | None = None
    ) -> None:
        self.toolset: type[TS] = toolset
        self.tool: CompiledTool = tool
        self.name: str = tool.definition.name
        # The selector of the class that this one's was made of; it keeps what was rendered.
        self._original: Selector[Any, I, O] | None = None
        self._spec: ToolSpec | None = None
        # A member may have settings of its own, which the tool's definition doesn't know.
        self._definition: ToolDef = tool.definition if definition is None else definition
        self._overridden: tuple[tuple[str | None, bytes], ToolSpec] | None = None

    @property
    def definition(self) -> ToolDef:
        """The tool's definition with the settings of its member; an offer doesn't change it."""
        return self._definition

    @overload
    def matches(self, call: BaseToolCall, /) -> TypeIs[ToolCall[I, O]]: ...
    @overload
    def matches(self, call: HandledTool[Any, Any], /) -> TypeGuard[HandledTool[I, O]]: ...
    @overload
    def matches(
        self, call: RejectedToolCall[Any], /
    ) -> TypeGuard[RejectedToolCall[ToolCall[I, O]]]: ...
    def matches(
        self, call: BaseToolCall | HandledTool[Any, Any] | RejectedToolCall[Any], /
    ) -> bool:
        """Whether `call` calls this tool; a type checker then knows its input and output.

        Takes calls, and what became of them: `HandledTool` and `RejectedToolCall`. One that was
        made by hand without a selector goes by the name of the tool.
        """
        selector = call.selector
        # Tools are compared, and not selectors: a nested toolset's call is a call of the outer
        # one's selector, and the other way round.
        if selector is None:
            return call.metadata.name == self.name
        return selector.tool is self.tool

    def spec(
        self,
        description: str | None = None,
        provider: dict[str, dict[str, Any]] | None = None,
    ) -> ToolSpec:
        """The tool as adapters see it, with what a turn says of it.

        Args:
            description: Another description.
            provider: Further settings for single APIs, copied and ours to keep.

        Raises:
            InvalidToolConstraints: An API is not known, or refuses its settings.
        """
        if description is None and provider is None:
            if self._spec is None:
                original = self._original
                self._spec = self._make_spec(None, None) if original is None else original.spec()
            return self._spec
        # The last override is kept: applications repeat one text turn after turn, and its rendering
        # is kept with it. Settings are compared as JSON, in which 1 is not true.
        key = description, b"" if provider is None else json_values.encode(provider)
        if self._overridden is None or self._overridden[0] != key:
            self._overridden = (key, self._make_spec(description, provider))
        return self._overridden[1]

    def for_toolset(self, toolset: type[Any]) -> Selector[Any, I, O]:
        """The same tool in a class that was made of this one's; what was rendered is shared."""
        twin = type(self)(toolset, self.tool, self._definition)
        twin._original = self
        return twin

    def _make_spec(
        self, description: str | None, provider: dict[str, dict[str, Any]] | None
    ) -> ToolSpec:
        definition = self._definition
        return ToolSpec(
            definition.name,
            definition.description if description is None else description,
            definition.input_schema,
            definition.options.strict,
            offered_settings(self.tool, definition, provider),
            definition.text,
            definition.options.late,
        )

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Selector {self.toolset.__name__}:{self.name}>"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Selector):
            return NotImplemented
        return self.toolset is other.toolset and self.name == other.name

    def __hash__(self) -> int:
        return hash((self.toolset, self.name))

    def __reduce__(self) -> tuple[Any, ...]:
        if self.toolset.__lutumpy_table__.made_at_run_time:
            from pickle import PicklingError

            raise PicklingError(
                f"{self!r} can't be pickled: {self.toolset.__name__} was made at run time, and no "
                "module holds it; store the tool's name, and ask the toolset's selector(name)"
            )
        return _find_selector, (self.toolset, self.name)

    def __copy__(self) -> Selector[TS, I, O]:
        return self

    def __deepcopy__(self, memo: Any) -> Selector[TS, I, O]:
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import PydanticCustomError, core_schema

        args = get_args(source)
        toolset: Any = args[0] if args else None
        if not hasattr(toolset, "__lutumpy_table__"):
            raise TypeError(
                "a pydantic field needs the toolset of its selectors: Selector[AppTools]"
            )

        # Not pydantic's own enum: a selector is accepted too, and gives itself.
        def validate(value: Any) -> Selector[Any, Any, Any]:
            if isinstance(value, Selector):
                if value.toolset is toolset:
                    return value
            elif isinstance(value, str):
                found: Selector[Any, Any, Any] | None = toolset.try_selector(value)
                if found is not None:
                    return found
            names = ", ".join([s.name for s in toolset.selectors()])
            raise PydanticCustomError(
                "selector", "Input should be the name of a tool: {names}", {"names": names}
            )

        return core_schema.no_info_plain_validator_function(
            validate,
            json_schema_input_schema=core_schema.str_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(
                str, return_schema=core_schema.str_schema()
            ),
            metadata={"pydantic_js_functions": [_NameEnum(toolset)]},
        )


# The keys of a `Mapping` are invariant. With one in place of this protocol, a dictionary whose keys
# are all functions would be refused: `FunctionSelector` isn't `Selector` there.
class ByTool(Protocol[S_co, V_co]):
    """Values by selector, as descriptions of a turn: any mapping."""

    def items(self) -> ItemsView[S_co, V_co]:
        """Each selector with its value."""
        ...


class FunctionSelector(Selector[TS, BaseModel, O], Generic[TS, P, O]):
    """A tool that is a function: to a type checker, its input is its parameters, `P`.

    `P` holds the parameters marked `Skip` too; no type can leave them out. What takes the model's
    arguments alone ends with `**_: Any`, and repeats the defaults.
    """

    __slots__ = ()

    def apply(self, call: BaseToolCall, function: Callable[P, R], /, **skipped: Any) -> R:
        """Run a function of the tool's parameters with the arguments of a call.

        It may be the tool itself, or one in its place.

        Args:
            call: A call of this tool.
            function: Takes all parameters of the tool; async ones give their coroutine.
            skipped: Parameters that the model doesn't see.

        Raises:
            TypeError: `call` calls another tool, or the function doesn't take the arguments.
                Nothing was run.
        """
        self._check_call(call)
        return cast("R", run_with(self.tool, call.input, function, skipped))

    def replace(
        self, call: BaseToolCall, /, *args: P.args, **kwargs: P.kwargs
    ) -> ToolCall[BaseModel, O]:
        """The call with other arguments, all of them; a default stands for what is left out.

        They are validated as the model's are. Parameters marked `Skip` are not part of a call,
        and are dropped.

        Raises:
            TypeError: `call` calls another tool, or these are not the tool's parameters.
            InvalidArgumentsError: A value doesn't fit.
        """
        self._check_call(call)
        return cast(
            "ToolCall[BaseModel, O]",
            call.with_input(replaced_input(self.tool, call.metadata, args, kwargs)),
        )

    def _check_call(self, call: BaseToolCall) -> None:
        if call.selector.tool is not self.tool:
            raise TypeError(
                f"call {call.metadata.id!r} is a call of {call.metadata.name!r}, not of "
                f"{self.name!r}; ask {self.toolset.__name__}.{self.name}.matches(call) first"
            )


class _NameEnum:
    """Gives a selector field the enum of the toolset's names, in both modes of JSON Schema."""

    __slots__ = ("_toolset",)

    def __init__(self, toolset: Any) -> None:
        self._toolset = toolset

    def __call__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "enum": [s.name for s in self._toolset.selectors()]}


def _find_selector(toolset: type[BaseToolset], name: str) -> Selector[Any, Any, Any]:
    return toolset.selector(name)


class ToolsetTable:
    """The tools of one toolset, in the forms in which they are looked up.

    Made by the class builder, and not changed afterwards, but for `cache`.

    Attributes:
        members: What `tool()` and `nested()` gave, by the member's name.
        selectors: Every tool in declaration order, nested ones in place.
        defaults: Those that aren't off.
        by_name: The same selectors by the tool's name.
        by_member: The selector, or the group of selectors, that reading a member gives.
        places: Where each tool was declared, by its name: `AppTools.data.get_user`.
        cache: What is made once for a toolset, such as its offer without arguments, by its makers.
        groups: The places for tools that are known at run time, nested ones included, as groups of
            this toolset.
        extends: The class that this one was made of at run time, with more tools.
        made_at_run_time: Whether the class was made by a call, so that no module holds it.
        is_filled: Whether it is another class, which it extends, with its places filled.
    """

    __slots__ = (
        "by_member",
        "by_name",
        "cache",
        "defaults",
        "extends",
        "groups",
        "is_filled",
        "made_at_run_time",
        "members",
        "places",
        "selectors",
    )

    def __init__(
        self, members: Mapping[str, object], extends: type[BaseToolset] | None = None
    ) -> None:
        self.members: Mapping[str, object] = members
        self.selectors: tuple[Selector[Any, Any, Any], ...] = ()
        self.defaults: tuple[Selector[Any, Any, Any], ...] = ()
        self.by_name: dict[str, Selector[Any, Any, Any]] = {}
        self.by_member: dict[object, Any] = {}
        self.places: dict[str, str] = {}
        self.cache: dict[str, Any] = {}
        self.groups: dict[Any, Any] = {}
        self.extends: type[BaseToolset] | None = extends
        self.made_at_run_time: bool = extends is not None
        self.is_filled: bool = False


class BaseToolset:
    """What hooks and rounds need to know of a toolset class: its tools.

    Everything below `lutumpy.toolset` takes toolsets by this type. `Toolset` adds what needs
    offers and hooks, which are made from selectors and so are above them.
    """

    __lutumpy_table__: ClassVar[ToolsetTable]

    def __new__(cls) -> Self:
        raise TypeError(f"{cls.__name__} is used as a class; it has no instances")

    @classmethod
    def selectors(cls) -> tuple[Selector[Self, Any, Any], ...]:
        """All tools in declaration order, nested ones in place."""
        return cls.__lutumpy_table__.selectors

    @classmethod
    def default_selectors(cls) -> tuple[Selector[Self, Any, Any], ...]:
        """All tools but those that are off."""
        return cls.__lutumpy_table__.defaults

    @classmethod
    def selector(cls, name: str, /) -> Selector[Self, Any, Any]:
        """The tool of this name; raises `UnknownToolError`."""
        found = cls.__lutumpy_table__.by_name.get(name)
        if found is None:
            raise unknown_tool(cls, name)
        return found

    @classmethod
    def try_selector(cls, name: str) -> Selector[Self, Any, Any] | None:
        """The tool of this name, or `None`."""
        return cls.__lutumpy_table__.by_name.get(name)

    @classmethod
    def definitions(cls) -> tuple[ToolDef, ...]:
        """The definitions of all tools."""
        return tuple([s.definition for s in cls.__lutumpy_table__.selectors])

    @classmethod
    def definitions_for(cls, selectors: Iterable[Selector[Self, Any, Any]]) -> tuple[ToolDef, ...]:
        """The definitions of these tools, in this order.

        Raises:
            InvalidToolConstraints: One belongs to another toolset.
        """
        return tuple([as_member_of(cls, s).definition for s in selectors])


class EmptyToolset(BaseToolset):
    """A toolset that is meant to have no tools. Any other without tools is refused by offers."""

    __lutumpy_table__: ClassVar[ToolsetTable] = ToolsetTable({})


def as_member_of(toolset: type[TS], selector: Selector[TS, Any, Any]) -> Selector[TS, Any, Any]:
    """`selector`, which must be one of `toolset`; raises `InvalidToolConstraints` otherwise."""
    if not isinstance(selector, Selector):
        raise InvalidToolConstraints(
            f"{selector!r} is not a selector; write {toolset.__name__}.<tool>"
        )
    if selector.toolset is not toolset:
        if (own := extended_selector(toolset, selector)) is not None:
            return own
        own_place = place_of_tool(toolset, selector)
        hint = "" if own_place is None else f"; write {own_place}"
        raise InvalidToolConstraints(
            f"{selector.toolset.__name__}.{selector.name} is a tool of another toolset than "
            f"{toolset.__name__}{hint}"
        )
    return selector


def place_of_tool(toolset: type[BaseToolset], selector: Selector[Any, Any, Any]) -> str | None:
    """How a program writes the tool of another toolset's selector as one of `toolset`:
    `AppTools.data.get_user`. `None` where `toolset` doesn't have it.
    """
    table = toolset.__lutumpy_table__
    own = table.by_name.get(selector.name)
    return table.places[own.name] if own is not None and own.tool is selector.tool else None


def suggest_tool(toolset: type[BaseToolset], name: str) -> str:
    """A hint for somebody who gave the name of a tool, or one like it, in place of the tool."""
    places = toolset.__lutumpy_table__.places
    near = [name] if name in places else near_names(name, places)
    return f"; give {' or '.join([places[known] for known in near])}" if near else ""


def extends(toolset: type[BaseToolset], base: type[BaseToolset]) -> bool:
    """Whether `toolset` is `base`, or was made of it at run time with more tools."""
    found: type[BaseToolset] | None = toolset
    while found is not None:
        if found is base:
            return True
        found = found.__lutumpy_table__.extends
    return False


def extended_selector(
    toolset: type[TS], selector: Selector[Any, Any, Any]
) -> Selector[TS, Any, Any] | None:
    """The selector of `toolset` for a tool that it has from the class it was made of."""
    if not extends(toolset, selector.toolset):
        return None
    own: Selector[TS, Any, Any] | None = toolset.__lutumpy_table__.by_name.get(selector.name)
    return own if own is not None and own.tool is selector.tool else None


def unknown_tool(toolset: type[BaseToolset], name: str) -> UnknownToolError:
    """The error for a name that no tool of `toolset` has, with the names that are most like it."""
    near = near_names(name, toolset.__lutumpy_table__.by_name)
    return UnknownToolError(name, toolset.__name__, near)


def near_names(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names most like `name`, nearest first; at most three."""
    import difflib

    return tuple(difflib.get_close_matches(name[:200], list(names), n=3, cutoff=0.5))
