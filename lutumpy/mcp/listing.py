"""What a server lists, as tools that are known at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from mcp.types import Tool, ToolAnnotations

from lutumpy import DeclarationError, DynamicTool, Toolset
from lutumpy.mcp.names import colliding_names, wire_name
from lutumpy.plain.values import dataclass

__all__ = ["Listing", "ListingOptions", "Run", "make_listing"]

Run: TypeAlias = "Callable[..., Any]"
"""The code of a tool, as `DynamicTool` takes it."""

Effect: TypeAlias = Literal["read", "idempotent", "once"]

_COMPOSED = ("$ref", "allOf", "anyOf", "oneOf", "if", "unevaluatedProperties")


@dataclass(frozen=True, slots=True)
class ListingOptions:
    """How the tools of a server are offered.

    Attributes:
        name: The name of the toolset class.
        prefix: What each tool's name begins with.
        allow: Which tools are offered, `None` for all.
        timeout: Seconds for one attempt of a call.
        trust_hints: Whether the server's hints decide about effects (rule MCP2).
        closed: Whether arguments that a schema doesn't name are refused.
        tasks: Whether tasks are spoken with the server.
    """

    name: str
    prefix: str
    allow: Callable[[Tool], bool] | None
    timeout: float
    trust_hints: bool
    closed: bool
    tasks: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools of a server as they were listed once.

    Attributes:
        tools: The tools that are offered.
        toolset: A toolset of them.
        skipped: Why each other tool isn't offered, by its original name.
        plain: A toolset of the same tools as the server declares them: without the prefix and
            whatever an option changes. That is what a lock holds.
        sources: The server's own entry for each of `tools`, by original name.
        kept_out: What a lock calls the tools that aren't allowed.
    """

    tools: tuple[DynamicTool, ...]
    toolset: type[Toolset[Any]]
    skipped: Mapping[str, str]
    plain: type[Toolset[Any]]
    sources: Mapping[str, Tool]
    kept_out: frozenset[str]

    def find(self, entry: Tool) -> DynamicTool | None:
        """The tool that was made of an equal entry."""
        if self.sources.get(entry.name) != entry:
            return None
        return next((tool for tool in self.tools if tool.original_name == entry.name), None)


def make_listing(
    listed: Sequence[Tool],
    options: ListingOptions,
    make_run: Callable[[Tool, Effect], Run],
    before: Listing | None = None,
) -> Listing:
    """The tools of a server. One that can't be declared is skipped, and its siblings stay (Y1).

    Args:
        listed: The server's list.
        options: How they are offered.
        make_run: Gives the code of a tool, for its entry and its effect.
        before: The list before this one. A tool that is the same in both is the same object, so
            what was rendered of it is kept.
    """
    skipped: dict[str, str] = {}
    kept_out: set[str] = set()
    sources: dict[str, Tool] = {}
    for entry in listed:
        if options.allow is not None and not options.allow(entry):
            skipped[entry.name] = "it isn't allowed"
            kept_out.add(wire_name(entry.name))
        elif not options.tasks and _is_only_task(entry):
            # A plain call of it would be refused each time (rule MCP6).
            skipped[entry.name] = (
                "it runs as a task alone (taskSupport): McpTools(..., tasks=True), and a server "
                "of the protocol 2026-07-28"
            )
        elif entry.name in sources:
            skipped[entry.name] = "the server lists it twice"
        else:
            sources[entry.name] = entry
    for name in [name for name in sources if skipped.get(name) == "the server lists it twice"]:
        del sources[name]
    colliding = colliding_names(sources, options.prefix) | colliding_names(sources, "")
    for name in sorted(colliding):
        skipped[name] = f"another tool has the name {wire_name(name, options.prefix)!r}"
        del sources[name]
    tools: list[DynamicTool] = []
    plain: list[DynamicTool] = []
    for name, entry in list(sources.items()):
        tool = None if before is None else before.find(entry)
        try:
            if tool is None:
                tool = _declare_offered(entry, options, make_run)
            plain.append(_declare_plain(entry, tool))
        except DeclarationError as error:
            skipped[name] = str(error)
            del sources[name]
            continue
        tools.append(tool)
    return Listing(
        tuple(tools),
        Toolset.of(options.name, tools),
        MappingProxyType(skipped),
        Toolset.of(options.name, plain),
        MappingProxyType(sources),
        frozenset(kept_out),
    )


def _is_only_task(entry: Tool) -> bool:
    return entry.execution is not None and entry.execution.task_support == "required"


def close_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with unknown arguments refused, where that is all that it would change.

    A schema that is composed of others is left as it is: `additionalProperties` doesn't see what
    the others name.
    """
    if "additionalProperties" in schema or any(key in schema for key in _COMPOSED):
        return schema
    return {**schema, "additionalProperties": False}


def _declare_offered(
    entry: Tool, options: ListingOptions, make_run: Callable[[Tool, Effect], Run]
) -> DynamicTool:
    effect = _read_effect(entry) if options.trust_hints else "once"
    hints = entry.annotations
    tool = DynamicTool(
        wire_name(entry.name, options.prefix),
        _describe(entry),
        close_schema(entry.input_schema) if options.closed else entry.input_schema,
        run=make_run(entry, effect),
        output_schema=entry.output_schema,
        check_output=False,  # an answer with text is given as that text (rule MCP4)
        timeout=options.timeout,
        effect=effect,
        annotations=None if hints is None else _list_hints(hints),
    )
    tool.original_name = entry.name
    return tool


def _declare_plain(entry: Tool, offered: DynamicTool) -> DynamicTool:
    """The tool as the server declares it; the offered one, if that is the same to a lock."""
    name = wire_name(entry.name)
    if offered.name == name and offered.schema == entry.input_schema:
        return offered
    return DynamicTool(
        name,
        _describe(entry),
        entry.input_schema,
        output_schema=entry.output_schema,
        check_output=False,
    )


def _describe(entry: Tool) -> str:
    return entry.description or entry.title or ""


def _list_hints(hints: ToolAnnotations) -> dict[str, Any]:
    return hints.model_dump(by_alias=True, exclude_none=True, mode="json")


def _read_effect(entry: Tool) -> Effect:
    hints = entry.annotations
    if hints is not None and hints.read_only_hint:
        return "read"
    if hints is not None and hints.idempotent_hint:
        return "idempotent"
    return "once"
