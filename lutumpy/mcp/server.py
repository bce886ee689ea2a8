"""`mcp_server`: a toolset served to any client of MCP."""

# What is hard here
# -----------------
# The SDK's server hands arguments on as the client wrote them: it validates nothing. So a call
# takes the same way here that a model's call takes, and leaves it with one result:
#
#   arguments --parse--> call --hooks--> decided --executor--> result --review--> content
#                  |               |
#                  v               v
#            "Tool call       "Tool call rejected: ...", or what a hook answered
#            rejected: ..."
#
# Nothing of this raises into the SDK, which would tell the client the text of an exception. What
# the user's code raised is told by class only, a `ToolError` by its message (rule K6).

from __future__ import annotations

import inspect
import logging
import uuid
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from mcp import MCPError
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.types import (
    INTERNAL_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
    ToolAnnotations,
)

from lutumpy import (
    DeclarationError,
    HandledTool,
    HookError,
    InvalidArgumentsError,
    MalformedArgumentsError,
    Offer,
    RejectedToolCall,
    Selector,
    ToolAvailability,
    ToolCallIssue,
    ToolMetadata,
    ToolResult,
    Toolset,
)
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.hooks import ToolHooks
from lutumpy.mcp.contents import (
    failed_result,
    make_result,
    sent_output_schema,
    worded_for_client,
)
from lutumpy.mcp.served_clients import ServedClients
from lutumpy.mcp.served_materials import CompleteArgument, Prompts, Resources, ServedMaterials
from lutumpy.plain import json_values
from lutumpy.plain.safe_text import safe_repr
from lutumpy.tools import extends

if TYPE_CHECKING:
    from lutumpy.hooks import BaseToolCall

__all__ = ["mcp_server"]

TS = TypeVar("TS", bound=Toolset[Any])
MakeContext = Callable[[ServerRequestContext[Any, Any]], Any]

_NAMES_SHOWN = 20
_log = logging.getLogger("lutumpy.mcp")
_UNDECIDED = "it could not be decided whether it may run"
_UNREVIEWED = "The result of this call can't be shown. What it did stands."
_NOT_RUN = "The tool could not be run."


def mcp_server(
    toolset: type[TS],
    *,
    name: str | None = None,
    dispatch: Dispatcher[TS] | None = None,
    hooks: ToolHooks[TS] | None = None,
    available: ToolAvailability[TS] | None = None,
    context: MakeContext | None = None,
    executor: ToolExecutor | None = None,
    version: str = "",
    instructions: str | None = None,
    prompts: Prompts = (),
    resources: Resources = MappingProxyType({}),
    complete: CompleteArgument | None = None,
) -> Server[Any]:
    """A toolset as a server of MCP: the SDK's own, for its stdio and streamable HTTP.

    Arguments are validated as a model's are. Hooks decide about every call, and review its result.
    Descriptions are those of description hooks.

    Args:
        toolset: The toolset.
        name: The server's name; that of the class if left out.
        dispatch: What runs the tools; `Dispatcher(toolset)` if left out.
        hooks: The toolset's registry.
        available: Which tools are served; those that aren't off, if left out.
        context: Called with the SDK's request context at each call, async or not. Gives the values
            of `Skip` parameters and of further parameters of handlers by name, as the dispatcher
            takes them.
        executor: Runs the calls; one with 32 calls at once if left out.
        version: The server's version.
        instructions: What clients are told about the server.
        prompts: Functions of texts, async or not: each is a prompt of its name, and gives a text,
            content parts, or pairs of a role and one of these.
        resources: Values by their addresses, or functions of them, async or not: texts, bytes,
            content parts. `note://{number}` is a template, and its function takes the number.
        complete: Proposes texts for an argument: takes the name of the prompt or the template, that
            of the argument, and what was typed.

    Raises:
        DeclarationError: Something isn't a toolset's, or nothing runs one of its tools; a prompt
            or a resource can't be one.
        InvalidToolConstraints: `available` can't hold.
    """
    _check_toolset(toolset)
    if dispatch is None:
        dispatch = Dispatcher(toolset)
    _check_parts(toolset, dispatch, hooks)
    if context is None:
        dispatch.check(toolset)
    served = _Served(
        toolset.offer(available=available),
        toolset,
        dispatch,
        hooks,
        context,
        executor or ToolExecutor(max_concurrency=32),
    )
    materials = ServedMaterials(prompts, resources, complete)
    clients = ServedClients(materials.find)
    with warnings.catch_warnings():
        # Newer protocols let a client ask for the log call by call.
        warnings.simplefilter("ignore")
        server: Server[Any] = Server(
            name or toolset.__name__,
            version=version,
            instructions=instructions,
            on_list_tools=served.list_tools,
            on_call_tool=served.call_tool,
            get_tool_input_schema=served.find_schema,
            **materials.handlers(),
            # A tool writes into the client's log by a `ServedCall`, which it gets from `context`.
            **clients.handlers(logs=context is not None, resources=materials.has_resources),
        )
    if materials.has_resources:
        clients.belong_to(server)
    return server


def _check_toolset(toolset: Any) -> None:
    if not isinstance(toolset, type) or not issubclass(toolset, Toolset):
        raise DeclarationError(f"mcp_server takes a Toolset class, not {safe_repr(toolset)}")


def _check_parts(toolset: Any, dispatch: Any, hooks: Any) -> None:
    if not isinstance(dispatch, Dispatcher):
        raise TypeError(f"dispatch= takes a Dispatcher, not {safe_repr(dispatch)}")
    if hooks is not None and not isinstance(hooks, ToolHooks):
        raise TypeError(f"hooks= takes {toolset.__name__}.hooks(), not {safe_repr(hooks)}")
    if hooks is not None and not extends(toolset, hooks._toolset):
        raise DeclarationError(f"{hooks!r} decides about no tools of {toolset.__name__}")


class _Served(Generic[TS]):
    """What a server does with the two requests that it gets."""

    def __init__(
        self,
        offer: Offer[Any],
        toolset: type[TS],
        dispatch: Dispatcher[TS],
        hooks: ToolHooks[TS] | None,
        context: MakeContext | None,
        executor: ToolExecutor,
    ) -> None:
        self._toolset = toolset
        self._selectors: Mapping[str, Selector[Any, Any, Any]]
        self._selectors = {selector.name: selector for selector in offer.selectors}
        self._dispatch = dispatch
        self._hooks = hooks
        self._context = context
        self._executor = executor

    def find_schema(self, name: str) -> Mapping[str, Any] | None:
        """The schema of a tool's arguments, for what the SDK looks up of it itself."""
        selector = self._selectors.get(name)
        return None if selector is None else selector.definition.input_schema

    async def list_tools(
        self, request: ServerRequestContext[Any, Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """All tools, in one page."""
        descriptions: dict[str, str] = {}
        if self._hooks is not None:
            try:
                texts = await self._hooks.description_overrides()
            except HookError:
                _log.exception("the tools can't be listed: a description hook failed")
                raise MCPError(INTERNAL_ERROR, "The tools can't be listed.") from None
            descriptions = {
                selector.name: json_values.clean_text(text) for selector, text in texts.items()
            }
        tools = [
            make_tool(selector, descriptions.get(name))
            for name, selector in self._selectors.items()
        ]
        return ListToolsResult(tools=tools)

    async def call_tool(
        self, request: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> CallToolResult:
        """One call, answered in every case."""
        selector = self._selectors.get(params.name)
        if selector is None:
            known = list(self._selectors)
            names = ", ".join(known[:_NAMES_SHOWN]) or "none"
            if len(known) > _NAMES_SHOWN:
                names += f" and {len(known) - _NAMES_SHOWN} more"
            text = f"There is no tool named {params.name[:100]!r}. Available tools: {names}."
            unknown = ToolCallIssue(ToolMetadata("", params.name, "{}"), "unknown_tool", text)
            return failed_result(str(unknown.answer().content))
        try:
            result = await self._answer(request, params)
        except Exception:
            _log.exception("the call of %r could not be run", params.name)
            return failed_result(_NOT_RUN)
        return make_result(result, selector)

    async def _answer(
        self, request: ServerRequestContext[Any, Any], params: CallToolRequestParams
    ) -> ToolResult:
        text = json_values.encode_text(params.arguments or {})
        metadata = ToolMetadata(str(request.request_id), params.name, text)
        try:
            call: BaseToolCall = self._toolset.parse(metadata)
        except InvalidArgumentsError as error:
            return ToolCallIssue(metadata, "invalid_arguments", error.detail).answer()
        except MalformedArgumentsError as error:
            return ToolCallIssue(metadata, "malformed_arguments", error.detail).answer()
        decided: BaseToolCall | HandledTool[Any, Any] | RejectedToolCall[Any] = call
        if self._hooks is not None:
            try:
                decided = await self._hooks.apply(call)
            except HookError:
                _log.exception("a hook failed, so the call of %r was not run", params.name)
                return call.reject(_UNDECIDED)
        result: Any = decided
        if not isinstance(decided, (HandledTool, RejectedToolCall)):
            result = await self._execute(request, decided)
        if self._hooks is None:
            return cast("ToolResult", result)
        try:
            (reviewed,) = await self._hooks.review([result])
        except HookError:
            _log.exception("a hook failed, so the result of %r is not shown", params.name)
            return ToolResult(metadata, _UNREVIEWED, "error")
        return reviewed

    async def _execute(
        self, request: ServerRequestContext[Any, Any], call: BaseToolCall
    ) -> ToolResult:
        dispatch = self._dispatch
        if self._context is not None:
            values = self._context(request)
            if inspect.isawaitable(values):
                values = await values
            dispatch = dispatch.with_context(values)
        # A scope for each call: two clients may mean different things by equal calls.
        scope = uuid.uuid4().hex
        try:
            (result,) = await self._executor.run([call], dispatch, scope=scope)
        finally:
            self._executor.resolve_scope(scope)
        return worded_for_client(result)


def make_tool(selector: Selector[Any, Any, Any], description: str | None = None) -> Tool:
    """A tool as it is listed. Its hints are those of its effect, and what it was declared with."""
    definition = selector.definition
    effect = definition.options.effect
    hints = {"readOnlyHint": effect == "read", "idempotentHint": effect != "once"}
    return Tool(
        name=definition.name,
        description=definition.description if description is None else description,
        input_schema=definition.input_schema,
        output_schema=sent_output_schema(selector),
        annotations=ToolAnnotations.model_validate(
            {
                **hints,
                **(definition.options.annotations or {}),
            }
        ),
    )
