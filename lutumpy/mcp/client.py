"""`McpTools`: the tools of an MCP server, as a toolset or as members of one."""

# What is hard here
# -----------------
# A server is a stranger that may change, fail and come back, and a conversation goes on meanwhile:
#
#   what happens                 what the conversation sees
#   ---------------------------  ---------------------------------------------------------------
#   the list of tools changes    nothing, but `changed`; `refresh` gives a new toolset
#   it differs from the lock     `SchemaChanged` from `refresh`; the old toolset stays
#   the server dies in a call    a failed result, of unknown outcome for the effect `once`
#   it is dead when a call comes a failed result: "Connection closed", nothing was sent
#   it comes back                `refresh` connects again; old tools go through the new connection
#
# The tools hold this object and not a connection, so a toolset of yesterday calls the server of
# today under the names that were listed yesterday.

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TextIO

import anyio
from anyio.abc import TaskGroup
from mcp import Client
from mcp.client import advertise
from mcp.types import Tool
from typing_extensions import Self

from lutumpy import (
    CallTicket,
    DynamicInput,
    DynamicTool,
    OpenCall,
    ToolCall,
    ToolMetadata,
    ToolResult,
    Toolset,
)
from lutumpy.mcp.calling import CallSender, ProgressHandler
from lutumpy.mcp.connection import Connection
from lutumpy.mcp.errors import McpConnectionError
from lutumpy.mcp.limits import Limits
from lutumpy.mcp.listing import Effect, Listing, ListingOptions, Run, make_listing
from lutumpy.mcp.locking import check_lock, describe_drift, find_locked
from lutumpy.mcp.materials import Materials
from lutumpy.mcp.names import check_prefix
from lutumpy.mcp.opening import HttpOptions, ServerAddress, name_address, open_client, read_server
from lutumpy.mcp.questions import AskHandler, Questions
from lutumpy.mcp.results import AnswerHandler, cut, hand_on, read_result
from lutumpy.mcp.tasks import EXTENSION, Tasks
from lutumpy.plain.safe_text import class_name, safe_str
from lutumpy.tool_doctor import Lock, LockedToolset, drift, locked_toolset
from lutumpy.tools import asking, polled_by

if TYPE_CHECKING:
    import httpx2

    from lutumpy import DynamicOutput

__all__ = ["AnswerHandler", "McpTools", "ProgressHandler"]

_log = logging.getLogger("lutumpy.mcp")
_MOST_PAGES = 1000
_FIRST_WITH_TASKS = "2026-07-28"  # of the protocol


class McpTools(Materials):
    """The tools of an MCP server, as dynamic tools; an async context manager.

    Nothing runs by itself: the tools are offered, decided about by hooks, executed and committed
    like all others. What the server says of its tools is untrusted: each has the effect `once`, and
    with a lock a changed description is an error before it is offered.

    Args:
        server: An `https://` address, `StdioServerParameters` (or `stdio:` and a command), a server
            in this process, or a function that opens a transport of the SDK.
        name: The name of the toolset.
        prefix: What each tool's name begins with for the model.
        allow: Which of the server's tools are offered; all if left out.
        lock: What was reviewed of the server's tools, or the file that holds it.
        timeout: Seconds for one attempt of a call.
        connect_timeout: Seconds for connecting, and for listing; a command may have to be fetched
            first.
        max_chars: Characters of text of one answer; what is more is cut.
        max_bytes: Bytes of an image or file of an answer; a larger one becomes a sentence.
        trust_hints: Whether the server's hints decide about effects: `readOnlyHint` is `"read"`,
            `idempotentHint` is `"idempotent"`.
        closed: Whether arguments that a schema doesn't name are refused, though it doesn't say so.
        headers: Further headers of every request, for a server behind HTTP.
        auth: As the SDK takes it, such as its `OAuthClientProvider`.
        http_client: A client of httpx2 in place of one made here, with headers and auth of its own;
            it stays open.
        env: Further environment variables of a command, over those of its parameters.
        errlog: Where a command writes its errors; standard error if left out.
        on_progress: Called with what the server reports of a running call.
        on_answer: Called with the call and the server's whole answer, before it is made an output:
            there its structured content is also where the model gets a text. The result of a task
            goes to the process that polls it, and once more where a second one does so too.
        ask: Asked what the server wants to know from a person in the middle of a call, in the time
            that the call has; the server is told that somebody can be asked. With `"hold"` a
            `DurableLoop` keeps the question: its run ends with `Waiting.questions`, and the call
            goes on after `loop.answer`. Where nothing can be kept, in a loop without a store or
            with a server of the older protocol, `"hold"` declines. Without `ask`, and without
            callbacks of the SDK's in `client_options`, a call that asks fails.
        tasks: Whether the server may make a task of a call, on the protocol 2026-07-28. Such a call
            is open then: a `DurableLoop` polls it, at the server's interval, each time it runs;
            elsewhere `poll` does.
        client_options: Further arguments of the SDK's `Client`, such as `mode`.

    Raises:
        DeclarationError: The prefix can't begin a name.
        TypeError: An argument is of another type. `ValueError` where it is out of range, or doesn't
            go with another one.
    """

    def __init__(
        self,
        server: ServerAddress,
        *,
        name: str = "McpTools",
        prefix: str = "",
        allow: Callable[[Tool], bool] | None = None,
        lock: Lock | str | Path | None = None,
        timeout: float = 30.0,
        connect_timeout: float = 60.0,
        max_chars: int = 50_000,
        max_bytes: int = 5_000_000,
        trust_hints: bool = False,
        closed: bool = False,
        headers: Mapping[str, str] | None = None,
        auth: httpx2.Auth | None = None,
        http_client: httpx2.AsyncClient | None = None,
        env: Mapping[str, str] | None = None,
        errlog: TextIO | None = None,
        on_progress: ProgressHandler | None = None,
        on_answer: AnswerHandler | None = None,
        ask: AskHandler | Literal["hold"] | None = None,
        tasks: bool = False,
        client_options: Mapping[str, Any] | None = None,
    ) -> None:
        server = read_server(server, env)
        self.name: str = name
        self._server: ServerAddress = server
        self._options = ListingOptions(
            name,
            check_prefix(prefix),
            allow,
            _check_seconds("timeout", timeout),
            trust_hints,
            closed,
        )
        self._connect_timeout = _check_seconds("connect_timeout", connect_timeout)
        self._limits = Limits(max_chars, max_bytes)
        self._lock = lock
        patience = max(self._options.timeout, self._connect_timeout)
        self._http = HttpOptions(headers, auth, http_client, patience)
        self._errlog = errlog
        self._on_answer = on_answer
        self._client_options: dict[str, Any] = {"cache": None, **(client_options or {})}
        if ask is not None and ask != "hold" and not callable(ask):
            raise TypeError(
                f'ask is a function that is called with a question, or "hold", not {ask!r:.100}'
            )
        if ask is not None and "elicitation_callback" in self._client_options:
            raise ValueError("who is asked: ask=, or the elicitation_callback of client_options")
        questions = Questions(name, ask, name_address(server))
        if questions.callback is not None:
            self._client_options["elicitation_callback"] = questions.callback
        self._holds = questions.holds
        self._tasks: Tasks | None = None
        if tasks:
            address = name_address(server)
            self._tasks = Tasks(name, address, self._limits, questions, self._ask, on_answer)
            known = self._client_options.get("extensions") or ()
            self._client_options["extensions"] = [*known, advertise(EXTENSION)]
        self._sender = CallSender(name, self._limits, on_progress, questions, self._tasks)
        # How often the server has told of a change, and how many of these the list knows.
        self._changes = 0
        self._changes_listed = 0
        self._instructions: str | None = None
        self._listing: Listing | None = None
        self._connection: Connection | None = None
        self._refreshing = anyio.Lock()
        self._group: TaskGroup | None = None

    # --- what the server offers -----------------------------------------------------------------

    @property
    def toolset(self) -> type[Toolset[ToolCall[DynamicInput, DynamicOutput]]]:
        """The tools as a toolset, as they were listed last."""
        return self._require_listing().toolset

    @property
    def tools(self) -> tuple[DynamicTool, ...]:
        """The tools as they were listed last, for `with_dynamic_tools`."""
        return self._require_listing().tools

    @property
    def skipped(self) -> Mapping[str, str]:
        """Why each other tool of the server isn't offered, by its name there."""
        return self._require_listing().skipped

    @property
    def instructions(self) -> str | None:
        """What the server says about its use. It is a stranger's text, and no prompt has it."""
        return self._instructions

    @property
    def changed(self) -> bool:
        """Whether the list of tools may have changed since it was read.

        The server said so, or didn't reach us for a while. Nothing happens until `refresh`.
        """
        return self._changes > self._changes_listed

    @property
    def connected(self) -> bool:
        """Whether the connection is open, as far as is known before the next call."""
        return self._connection is not None and self._connection.state == "open"

    @property
    def client(self) -> Client:
        """The SDK's own client of the connection that is open, for what isn't wrapped here.

        Raises:
            McpConnectionError: None is open.
        """
        return self._require_connection().client

    @property
    def address(self) -> str | None:
        """The server's address, as `lutumpy tools lock` takes it; `None` where it has none."""
        return name_address(self._server)

    def locked(self) -> LockedToolset:
        """The tools as a lock would hold them: by the server's own declaration, no prefix."""
        return locked_toolset(self._require_listing().plain)

    def _require_listing(self) -> Listing:
        if self._listing is None:
            raise McpConnectionError(
                f"the tools of {self.name} aren't known: use it as `async with McpTools(...)`"
            )
        return self._listing

    # --- its life -------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Connect and list the tools.

        Raises:
            McpConnectionError: The server can't be reached, or doesn't list its tools.
            SchemaChanged: They aren't as they were locked.
            LockError: The lock can't be read, or knows nothing of the server.
        """
        if self._group is not None:
            raise RuntimeError(f"{self!r} was entered before; make a new one")
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        try:
            await self.refresh()
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._leave()

    async def _leave(self) -> None:
        if self._connection is not None:
            await self._connection.close()
        if self._group is not None:
            # The task of the connection is gone, and no error of the block concerns its group,
            # which would wrap it.
            await self._group.__aexit__(None, None, None)

    async def refresh(self) -> type[Toolset[ToolCall[DynamicInput, DynamicOutput]]]:
        """List the tools again; connect again where the connection is closed, or nobody answers.

        Returns:
            The new toolset, which `toolset` gives from now on. The old one stays usable. Without a
            lock, what changed is logged.

        Raises:
            McpConnectionError: The server can't be reached, or doesn't list its tools.
            SchemaChanged: They aren't as they were locked.
            LockError: The lock can't be read, or knows nothing of the server.
        """
        async with self._refreshing:
            locked = None
            if self._lock is not None:
                names = [one for one in (self.address, self.name) if one is not None]
                locked = find_locked(self._lock, names)
            changes = self._changes  # what is told from here on may be missing in the list
            listed = await self._list_or_reconnect()
            before = self._listing
            modern = self.client.protocol_version >= _FIRST_WITH_TASKS
            options = replace(self._options, tasks=modern and self._tasks is not None)
            listing = make_listing(listed, options, self._make_run, before)
            if locked is not None:
                compared = {n: one for n, one in locked.items() if n not in listing.kept_out}
                check_lock(self.name, compared, listing.plain)
            elif before is not None:
                for change in describe_drift(drift(locked_toolset(before.plain), listing.plain)):
                    _log.warning("%s changed: %s", self.name, change)
            for original, reason in listing.skipped.items():
                _log.info("%s: the tool %r is not offered: %s", self.name, original, reason)
            self._listing, self._changes_listed = listing, changes
            return listing.toolset

    async def _list_or_reconnect(self) -> list[Tool]:
        connection = self._connection
        if connection is not None and connection.state == "open":
            try:
                return await self._list(connection)
            except McpConnectionError as error:
                # Calls may be running there, which would be cut off for nothing.
                if await connection.answers():
                    raise
                _log.debug("%s can't be listed on this connection: %r", self.name, error)
                await connection.close()
        return await self._list(await self._connect())

    async def _connect(self) -> Connection:
        if self._group is None:
            raise RuntimeError(f"{self!r} wasn't entered: use it as `async with McpTools(...)`")
        connection = Connection(self._make_client, self._note_change)
        seconds = self._connect_timeout
        with anyio.move_on_after(seconds) as scope:
            await self._group.start(connection.hold)
        if connection.state != "open":
            await connection.close()
            if scope.cancelled_caught:
                why = f"it didn't answer within {seconds:g} seconds"
            else:
                why = _explain(connection.cause)
            raise McpConnectionError(f"{self.name} can't be reached: {why}") from connection.cause
        self._connection = connection
        self._instructions = connection.client.instructions
        return connection

    def _make_client(self, receive: Any, on_end: Callable[[], None]) -> Client:
        options = {**self._client_options}
        receives = options.pop("message_handler", None)

        async def receive_all(message: Any) -> None:
            await receive(message)
            if receives is not None:
                await receives(message)

        options["message_handler"] = receive_all
        return open_client(
            self._server, http=self._http, errlog=self._errlog, on_end=on_end, options=options
        )

    def _note_change(self) -> None:
        self._changes += 1

    async def _list(self, connection: Connection) -> list[Tool]:
        """Every page of the list.

        Raises:
            McpConnectionError: The server doesn't give it.
        """
        seconds = self._connect_timeout
        try:
            with anyio.move_on_after(seconds):
                return await self._list_pages(connection)
        except McpConnectionError:
            raise
        except Exception as error:  # also a list that breaks the protocol
            text = cut(_explain(error), 1000)
            raise McpConnectionError(f"{self.name} doesn't list its tools: {text}") from error
        raise McpConnectionError(f"{self.name} didn't list its tools within {seconds:g} seconds")

    async def _list_pages(self, connection: Connection) -> list[Tool]:
        listed: list[Tool] = []
        cursor: str | None = None
        seen: set[str] = set()
        while True:
            page = await connection.send(_list_page(cursor))
            listed += page.tools
            cursor = page.next_cursor
            if cursor is None:
                return listed
            if cursor in seen or len(seen) >= _MOST_PAGES:
                raise McpConnectionError(f"{self.name} doesn't come to an end of its tools")
            seen.add(cursor)

    # --- calls ----------------------------------------------------------------------------------

    def _make_run(self, entry: Tool, effect: Effect) -> Run:
        name = entry.name
        if self._holds:

            async def run_leg(
                arguments: dict[str, Any],
                call: ToolMetadata | None = None,
                ticket: CallTicket | None = None,
            ) -> DynamicOutput:
                return await self._call(name, effect, arguments, call, ticket)

            return self._marked(asking(run_leg))

        async def run(arguments: dict[str, Any], call: ToolMetadata | None = None) -> DynamicOutput:
            return await self._call(name, effect, arguments, call)

        return self._marked(run)

    def _marked(self, run: Run) -> Run:
        return run if self._tasks is None else polled_by(run, self._tasks)

    async def poll(self, call: OpenCall) -> ToolResult | None:
        """Ask once for the result of a call that became a task: for `session.deliver`.

        Questions of the task are answered as `ask=` says; without a store, `"hold"` declines.

        Args:
            call: One of `session.open_calls`.

        Returns:
            The result; `None` while the task runs. Where the server knows the task no more, an
            error: whether a `once` tool has done something is not known.

        Raises:
            ValueError: It isn't a task of this server.
            McpConnectionError: The server can't be reached.
        """
        if self._tasks is None:
            raise ValueError(f"{self.name} speaks no tasks: McpTools(..., tasks=True)")
        return await self._tasks.result_of(call)

    async def _call(
        self,
        name: str,
        effect: Effect,
        arguments: dict[str, Any],
        call: ToolMetadata | None,
        ticket: CallTicket | None = None,
    ) -> DynamicOutput:
        """Run a tool of the server (rules MCP4 to MCP6)."""
        connection = self._connection or self._require_connection()
        result = await self._sender.call(connection, name, effect, arguments, call, ticket)
        if self._on_answer is not None:
            await hand_on(self._on_answer, call, result)
        return read_result(result, self._limits)

    async def _ask(self, request: Callable[[Client], Any]) -> Any:
        return await self._require_connection().send(request)

    def _require_connection(self) -> Connection:
        if self._connection is None:
            raise McpConnectionError(f"{self.name} isn't connected: `async with McpTools(...)`")
        return self._connection

    def __repr__(self) -> str:
        if self._listing is None:
            return f"<McpTools {self.name}, not listed>"
        state = "connected" if self.connected else "closed"
        return f"<McpTools {self.name}, {state}: {len(self.tools)} tools>"


def _list_page(cursor: str | None) -> Any:
    return lambda client: client.list_tools(cursor=cursor)


def _check_seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {value!r}")
    if math.isnan(value) or value <= 0:
        raise ValueError(f"{name} must be more than 0 seconds, not {value}")
    return float(value)


def _explain(cause: BaseException | None) -> str:
    """Why a connection failed: the first exception that a group holds."""
    inner: Any = getattr(cause, "exceptions", None)
    while inner:
        cause = inner[0]
        inner = getattr(cause, "exceptions", None)
    if cause is None:
        return "it closed the connection"
    return f"{class_name(cause)}: {safe_str(cause)}"
