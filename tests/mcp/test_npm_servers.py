"""The reference servers from npm, over stdio and streamable HTTP; `npm_modules` says when."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import StdioServerParameters
from mcp_toolkit import SECONDS, free_port, kill, node, run_call, wait_for_port

from lutumpy import ImagePart, InvalidArgumentsError, ToolMetadata
from lutumpy.mcp import McpTools, SchemaChanged
from lutumpy.tool_doctor import Lock, LockedTool, check_tools


@pytest.fixture
def files(npm_modules: Path, tmp_path: Path) -> StdioServerParameters:
    """The filesystem server for an empty folder."""
    script = npm_modules / "server-filesystem" / "dist" / "index.js"
    return StdioServerParameters(command=node(), args=[str(script), str(tmp_path)])


@pytest.fixture(params=["stdio", "http"])
def everything(npm_modules: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The server that does everything, over either transport."""
    script = str(npm_modules / "server-everything" / "dist" / "index.js")
    if request.param == "stdio":
        yield StdioServerParameters(command=node(), args=[script])
        return
    port = free_port()
    process = subprocess.Popen(
        [node(), script, "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_port(port, process)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def log_of(tmp_path: Path) -> Any:
    return open(tmp_path.parent / f"{tmp_path.name}.log", "w")


async def test_the_filesystem_server_writes_reads_and_refuses(
    files: StdioServerParameters, tmp_path: Path
) -> None:
    with log_of(tmp_path) as log:
        async with McpTools(files, name="Files", prefix="fs_", errlog=log) as source:
            assert source.skipped == {}
            assert {"fs_read_text_file", "fs_write_file"} <= {tool.name for tool in source.tools}
            path = tmp_path / "note.txt"
            written = await run_call(
                source, "fs_write_file", f'{{"path": "{path}", "content": "line 1\\nline 2"}}'
            )
            assert written.outcome == "ok"
            assert path.read_text() == "line 1\nline 2"
            read = await run_call(source, "fs_read_text_file", f'{{"path": "{path}"}}')
            assert read.content == "line 1\nline 2"
            denied = await run_call(source, "fs_read_text_file", '{"path": "/etc/passwd"}')
            assert denied.outcome == "failed"
            assert "Access denied" in str(denied.content)
            with pytest.raises(InvalidArgumentsError, match='path: 3 is not of type "string"'):
                source.toolset.parse(ToolMetadata("c", "fs_read_text_file", '{"path": 3}'))


async def test_the_filesystem_server_cuts_a_long_file(
    files: StdioServerParameters, tmp_path: Path
) -> None:
    (tmp_path / "long.txt").write_text("x" * 1_000_000)
    with log_of(tmp_path) as log:
        async with McpTools(files, errlog=log) as source:
            text = f'{{"path": "{tmp_path / "long.txt"}"}}'
            read = await run_call(source, "read_text_file", text)
            assert str(read.content).endswith("[950000 of 1000000 characters were left out]")


async def test_the_filesystem_servers_lock_notices_a_word(
    files: StdioServerParameters, tmp_path: Path
) -> None:
    with log_of(tmp_path) as log:
        async with McpTools(files, name="Files", errlog=log) as source:
            locked = dict(source.locked())
        async with McpTools(files, name="Files", lock=Lock({"Files": locked}), errlog=log):
            pass
        one = locked["get_file_info"]
        text = f"Only this: {one.definition['description']}"
        locked["get_file_info"] = LockedTool("sha256:", {**one.definition, "description": text})
        with pytest.raises(
            SchemaChanged, match=r"get_file_info at /description: \[-Only this: -\]"
        ):
            async with McpTools(files, name="Files", lock=Lock({"Files": locked}), errlog=log):
                raise AssertionError


async def test_everything_is_listed_and_its_answers_are_read(
    everything: Any, tmp_path: Path
) -> None:
    with log_of(tmp_path) as log:
        async with McpTools(everything, name="Everything", errlog=log) as source:
            assert set(source.skipped) == {"simulate-research-query"}  # a task alone (rule MCP6)
            assert source.instructions
            assert check_tools(source.toolset).errors == ()
            echo = await run_call(source, "echo", '{"message": "hello"}')
            assert echo.content == "Echo: hello"
            total = await run_call(source, "get-sum", '{"a": 2, "b": 40}')
            assert "42" in str(total.content)
            image = await run_call(source, "get-tiny-image")
            assert any(isinstance(part, ImagePart) for part in image.content)
            weather = await run_call(source, "get-structured-content", '{"location": "Chicago"}')
            assert str(weather.content).count("temperature") == 1
            links = await run_call(source, "get-resource-links", '{"count": 2}')
            assert "](demo://" in str(links.content)
            resource = await run_call(source, "get-resource-reference", '{"resourceId": 1}')
            assert resource.outcome == "ok"


async def test_progress_and_cancellation_of_a_long_operation(
    everything: Any, tmp_path: Path
) -> None:
    steps: list[Any] = []

    def note(call: Any, progress: float, total: float | None, message: str | None) -> None:
        steps.append((call.id, progress, total))

    name = "trigger-long-running-operation"
    with log_of(tmp_path) as log:
        async with McpTools(everything, on_progress=note, errlog=log) as source:
            done = await run_call(source, name, '{"duration": 1, "steps": 2}')
            assert done.outcome == "ok"
            assert steps == [("c1", 1.0, 2.0), ("c1", 2.0, 2.0)]
            with anyio.move_on_after(0.3) as scope:
                await run_call(source, name, '{"duration": 60, "steps": 2}')
            assert scope.cancelled_caught
            assert (await run_call(source, "echo", '{"message": "x"}')).content == "Echo: x"


async def test_killed_during_a_call_and_back_again(npm_modules: Path, tmp_path: Path) -> None:
    script = npm_modules / "server-everything" / "dist" / "index.js"
    pid = tmp_path / "pid"
    command = f"echo $$ > {pid}; exec {node()} {script}"
    found: list[Any] = []
    with log_of(tmp_path) as log:
        server = StdioServerParameters(command="sh", args=["-c", command])
        async with McpTools(server, errlog=log) as source:

            async def run() -> None:
                name = "trigger-long-running-operation"
                found.append(await run_call(source, name, '{"duration": 60, "steps": 2}'))

            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await anyio.sleep(0.5)
                kill(int(pid.read_text()))
            assert [result.outcome for result in found] == ["maybe_executed"]
            with anyio.fail_after(SECONDS):
                await source.refresh()
            assert (await run_call(source, "echo", '{"message": "x"}')).content == "Echo: x"
