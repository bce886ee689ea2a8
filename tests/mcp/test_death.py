"""Servers that die, are slow, or come back: the result of one call, and never more (MCP5, MCP8)."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError, StdioServerParameters
from mcp.server import Server
from mcp.shared import _httpx_utils
from mcp.types import EmptyResult, ListToolsResult
from mcp_toolkit import (
    SECONDS,
    FakeServer,
    free_port,
    http_server,
    kill,
    make_tool,
    run_call,
    stdio_server,
    text_result,
)

from lutumpy.execution import ToolExecutor
from lutumpy.mcp import McpConnectionError, McpConnectionLost, McpTools

CLOSED = "Connection closed: the server is gone, and this tool was not called."
KINDS = pytest.mark.parametrize("kind", ["stdio", "http"])


def start(kind: str, port: int = 0) -> AbstractContextManager[Any]:
    """A server of this kind; gives what McpTools takes."""
    if kind == "http":
        return http_server(port or free_port())
    return nullcontext(stdio_server())


async def wait_for(file: Path) -> None:
    with anyio.fail_after(SECONDS):
        while not file.exists():
            await anyio.sleep(0.01)


async def wait_until_closed(source: McpTools) -> None:
    with anyio.fail_after(SECONDS):
        while source.connected:
            await anyio.sleep(0.01)


@pytest.mark.parametrize(
    ("kind", "library"), [("stdio", "asyncio"), ("http", "asyncio"), ("http", "trio")]
)
def test_killed_during_calls_each_fails_and_the_next_says_closed_MCP5(
    kind: str, library: str, tmp_path: Path
) -> None:
    anyio.run(kill_during_calls, kind, tmp_path, backend=library)


async def kill_during_calls(kind: str, tmp_path: Path) -> None:
    with start(kind) as server:
        async with McpTools(server) as source:
            pid = int(str((await run_call(source, "pid")).content))
            outcomes: list[Any] = []

            async def wait(number: int) -> None:
                file = tmp_path / f"{number}"
                text = f'{{"file": "{file}"}}'
                result = await run_call(source, "wait", text, executor=ToolExecutor())
                outcomes.append((result.outcome, type(result.error)))

            async with anyio.create_task_group() as group:
                for number in range(3):
                    group.start_soon(wait, number)
                for number in range(3):
                    await wait_for(tmp_path / f"{number}.began")
                kill(pid)
            assert outcomes == [("maybe_executed", McpConnectionLost)] * 3
            for _ in range(2):
                after = await run_call(source, "pid")
                assert (after.content, after.outcome) == (CLOSED, "failed")
            assert not source.connected


@KINDS
async def test_killed_between_calls_one_call_fails_and_refresh_connects_again_MCP5(
    kind: str,
) -> None:
    port = free_port()
    with start(kind, port) as server, ExitStack() as again:
        async with McpTools(server) as source:
            old = source.toolset
            kill(int(str((await run_call(source, "pid")).content)))
            if kind == "http":  # nobody notices before a call
                assert (await run_call(source, "pid")).outcome == "maybe_executed"
            await wait_until_closed(source)
            after = await run_call(source, "pid")
            assert (after.content, after.outcome) == (CLOSED, "failed")
            if kind == "http":
                with pytest.raises(McpConnectionError, match="can't be reached"):
                    await source.refresh()
                assert source.toolset is old
                again.enter_context(start(kind, port))
            assert await source.refresh() is source.toolset
            assert source.connected
            assert (await run_call(source, "pid")).outcome == "ok"


async def test_a_server_that_knows_the_session_no_more_is_gone_and_ran_nothing_MCP5() -> None:
    port = free_port()
    with ExitStack() as first, ExitStack() as again:
        server = first.enter_context(start("http", port))
        async with McpTools(server, client_options={"mode": "legacy"}) as source:
            first.close()
            again.enter_context(start("http", port))
            assert source.connected  # nobody notices before a call
            for _ in range(2):
                after = await run_call(source, "pid")
                assert (after.content, after.outcome) == (CLOSED, "failed")
                assert not source.connected
            await source.refresh()
            assert (await run_call(source, "pid")).outcome == "ok"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_refusal_with_the_code_of_a_closed_connection_costs_its_own_call_alone_MCP5(
    mode: str, backend: str
) -> None:
    """JSON-RPC leaves -32000 to servers, and many refuse a call by it."""
    begun, answers = anyio.Event(), anyio.Event()

    async def answer(name: str, arguments: dict[str, Any]) -> Any:
        if name == "refused":
            raise MCPError(-32000, "too many calls")
        begun.set()
        await answers.wait()
        return text_result("done")

    fake = FakeServer(make_tool("refused", read_only=True), make_tool("slow"), answer=answer)
    options = {"mode": mode}
    found: list[Any] = []
    async with McpTools(fake.server, trust_hints=True, client_options=options) as source:

        async def call_slow() -> None:
            found.append(await run_call(source, "slow"))

        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(call_slow)
                await begun.wait()
                refused = await run_call(source, "refused")
                answers.set()
        assert (refused.outcome, refused.content) == ("failed", "too many calls")
        assert source.connected
    assert found[0].content == "done"


async def test_a_call_may_take_longer_than_the_sdks_client_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its time of silence is an error of the connection, which ends every call on it."""
    monkeypatch.setattr("lutumpy.mcp.opening.MCP_DEFAULT_SSE_READ_TIMEOUT", 0.2)
    made: list[Any] = []
    make = _httpx_utils.create_mcp_http_client

    def make_client(**options: Any) -> Any:
        made.append(make(**options))
        return made[-1]

    monkeypatch.setattr("lutumpy.mcp.opening.create_mcp_http_client", make_client)
    with http_server(free_port()) as address:
        for timeout, read in ((600.0, 660.0), (float("inf"), None)):
            async with McpTools(address, timeout=timeout) as source:
                assert (await run_call(source, "pid")).outcome == "ok"
            assert made.pop().timeout.read == read


@pytest.mark.parametrize(("code", "knows_it"), [(-32600, True), (-32600, False), (-32001, False)])
async def test_a_call_that_is_refused_is_of_an_unknown_session_only_if_a_ping_is_MCP5(
    code: int, knows_it: bool, backend: str
) -> None:
    async def refuse(context: Any, params: Any) -> Any:
        raise MCPError(code, "Session not found")

    async def answer(context: Any, params: Any) -> EmptyResult:
        return EmptyResult()

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[make_tool("a")])

    server: Server[Any] = Server(
        "forgetful",
        on_list_tools=list_tools,
        on_call_tool=refuse,
        on_ping=answer if knows_it else refuse,
    )
    async with McpTools(server, client_options={"mode": "legacy"}) as source:
        result = await run_call(source, "a")
        assert result.outcome == ("maybe_executed" if knows_it else "failed")
        assert source.connected is knows_it


@KINDS
async def test_cancellations_and_timeouts_reach_the_server_which_lives_on_MCP8(
    kind: str, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with start(kind) as server:
        async with McpTools(server, timeout=2, max_chars=2_000_000) as source:
            async with anyio.create_task_group() as group:
                group.start_soon(run_call, source, "wait", f'{{"file": "{first}"}}')
                await wait_for(first.with_suffix(".began"))
                group.cancel_scope.cancel()
            await wait_for(first.with_suffix(".cancelled"))
            result = await run_call(source, "wait", f'{{"file": "{second}"}}')
            assert result.outcome == "maybe_executed"
            assert "did not finish within 2 seconds" in str(result.content)
            await wait_for(second.with_suffix(".cancelled"))
            assert source.connected
            assert (await run_call(source, "big")).content == "x" * 1_000_000


async def test_an_error_of_the_block_comes_out_as_it_is(backend: str) -> None:
    """Not in an exception group, as the task group of the connection would make one."""
    with pytest.raises(KeyError, match="mine"):
        async with McpTools(FakeServer(make_tool("a")).server):
            raise KeyError("mine")


async def test_a_cancelled_block_ends_its_server() -> None:
    pids: list[int] = []
    with anyio.move_on_after(SECONDS) as scope:
        async with McpTools(stdio_server()) as source:
            pids.append(int(str((await run_call(source, "pid")).content)))
            scope.cancel()
            await anyio.sleep(SECONDS)
    assert scope.cancelled_caught
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (StdioServerParameters(command="no-such-command"), "FileNotFoundError"),
        (StdioServerParameters(command=sys.executable, args=["-c", ""]), "closed"),
        ("http://127.0.0.1:9/mcp", "ConnectError"),
    ],
)
async def test_a_server_that_is_not_there_is_one_plain_error(
    server: Any, message: str, backend: str
) -> None:
    with pytest.raises(McpConnectionError, match=f"Files can't be reached: .*{message}"):
        async with McpTools(server, name="Files"):
            raise AssertionError


async def test_a_server_that_never_answers_is_given_up_in_time() -> None:
    silent = StdioServerParameters(
        command=sys.executable, args=["-c", "import time; time.sleep(60)"]
    )
    with pytest.raises(McpConnectionError, match=r"didn't answer within 0\.5 seconds"):
        async with McpTools(silent, connect_timeout=0.5):
            raise AssertionError


async def test_it_is_entered_once() -> None:
    source = McpTools(FakeServer(make_tool("a")).server)
    async with source:
        pass
    with pytest.raises(RuntimeError, match="was entered before"):
        await source.__aenter__()
    assert not source.connected
    assert [tool.name for tool in source.tools] == ["a"]


async def test_calls_run_beside_each_other_and_end_with_the_block(backend: str) -> None:
    server = FakeServer(make_tool("t"), answer=lambda *_: slow())

    async def slow() -> Any:
        await anyio.sleep(0.01)
        return text_result("ok")

    async with McpTools(server.server) as source, anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(run_call, source, "t", f'{{"n": {number}}}')
    assert len(server.calls) == 50


async def test_a_line_that_is_not_utf_8_stops_no_server(backend: str) -> None:
    with anyio.fail_after(SECONDS):
        async with McpTools(stdio_server()) as source:
            for name in ("stray", "pid"):
                assert (await run_call(source, name)).outcome == "ok"


async def test_environment_and_error_log_reach_the_command(tmp_path: Path) -> None:
    script = (
        "import os, sys; print(os.environ['WORD'], file=sys.stderr, flush=True); "
        f"sys.argv = ['s']; exec(open({str(Path(__file__).parent / 'server_script.py')!r}).read())"
    )
    server = StdioServerParameters(command=sys.executable, args=["-c", script])
    address = McpTools(server).address
    assert address is not None
    ways: list[Any] = [server, address, address.replace(" -c ", "  '-c'  ")]
    for number, given in enumerate(ways):
        with open(tmp_path / f"log {number}", "w+") as log:
            async with McpTools(given, env={"WORD": "from outside"}, errlog=log) as source:
                assert source.address == address  # what a lock has
                assert (await run_call(source, "pid")).outcome == "ok"
            log.seek(0)
            assert log.read() == "from outside\n"
