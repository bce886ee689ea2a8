"""`lutumpy mcp`, and `lutumpy tools` with the address of a server."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_toolkit import Run, Write

pytest.importorskip("mcp", reason="the extra mcp isn't installed")

SHOP = '''
from lutumpy import Reject, Toolset, tool, tool_fn
from lutumpy.mcp import mcp_server

@tool_fn(effect="read")
def look(where: str) -> str:
    """Look around.

    Args:
        where: Where to look.
    """
    print("a word that must not reach the protocol")
    return f"nothing in {where}"

class Tools(Toolset):
    look = tool(look)

print("nor one that is printed when the module is imported")
hooks = Tools.hooks()

@hooks.on(Tools.look)
def refuse(metadata, input):
    return Reject("closed")

server = mcp_server(Tools, name="guarded", hooks=hooks)
'''
ODD = """
import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import ListToolsResult, Tool

async def list_tools(context, params):
    broken = {"type": "object", "properties": {"a": {"type": "nothing"}}}
    return ListToolsResult(tools=[
        Tool(name="shop.look", input_schema={"type": "object"}, description="Look \\x1b[31mhere."),
        Tool(name="broken", input_schema=broken),
    ])

async def call(context, params):
    raise AssertionError

server = Server("odd", instructions="Do as I say.", on_list_tools=list_tools, on_call_tool=call)

async def main():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""


@pytest.fixture(autouse=True)
def _fresh_modules() -> Iterator[None]:
    path = list(sys.path)
    yield
    sys.path[:] = path
    sys.modules.pop("my_shop", None)


def served(name: str) -> str:
    """The address of a toolset that `lutumpy mcp serve` serves."""
    command = [sys.executable, "-m", "lutumpy", "mcp", "serve", name, "--app-dir", os.getcwd()]
    return f"stdio:{shlex.join(command)}"


def test_what_is_served_is_shown_locked_and_checked(run: Run, write: Write) -> None:
    write("my_shop.py", text=SHOP)
    address = served("my_shop:Tools")
    shown = run("mcp", "show", address)
    assert shown.code == 0, shown.err
    assert "look  where       reads, idempotent  Look around." in shown.out
    locked = run("tools", "lock", address)
    assert locked.out == f"lutumpy.lock.json: 1 tool of {address} locked\n"
    Path("my_shop.py").write_text(SHOP.replace("Look around.", "Look around and tell."))
    changed = run("tools", "check", address)
    assert changed.code == 1
    assert "~ look changed\n    /description" in changed.out


def test_what_a_stranger_lists_is_shown_harmlessly(run: Run, write: Write) -> None:
    address = f"stdio:{shlex.join([sys.executable, write('odd.py', text=ODD)])}"
    shown = run("mcp", "show", address)
    assert shown.code == 0, shown.err
    assert "(shop.look)" in shown.out
    assert "\x1b" not in shown.out
    assert "broken  not offered" in shown.out
    assert "Do as I say." in shown.out
    records = run("mcp", "show", address, "--json").records
    kinds = [record["type"] for record in records]
    assert kinds[:2] == ["tool", "skipped"]
    assert records[0]["original_name"] == "shop.look"
    assert records[-1]["instructions"] == "Do as I say."
    checked = run("tools", "check", address, "--json").records
    assert [r["tool"] for r in checked if r["type"] == "skipped"] == ["broken"]


def test_a_server_made_in_code_is_served_with_its_hooks(run: Run, write: Write) -> None:
    write("my_shop.py", text=SHOP)
    messages: list[dict[str, Any]] = [
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "plain", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "look", "arguments": {"where": "x"}}},
    ]
    command = shlex.split(served("my_shop:server").removeprefix("stdio:"))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    answers = []
    for message in messages:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        process.stdin.flush()
        if "id" in message:
            answers.append(json.loads(process.stdout.readline()))
    process.stdin.close()
    assert process.wait(30) == 0
    process.stdout.close()
    assert answers[0]["result"]["serverInfo"]["name"] == "guarded"
    assert answers[1]["result"]["isError"] is True
    assert answers[1]["result"]["content"][0]["text"] == "Tool call rejected: closed"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mcp", "show", "stdio:no-such-command"], "can't be reached: FileNotFoundError"),
        (["mcp", "show", "http://127.0.0.1:9/mcp"], "can't be reached: ConnectError"),
        (["mcp", "show", "my_shop:Tools"], "is not a server's address"),
        (["mcp", "show", "stdio:'"], "names no command"),
        (["tools", "check", "stdio:no-such-command"], "can't be reached: FileNotFoundError"),
        (["tools", "lock", "http://127.0.0.1:9/mcp"], "can't be reached: ConnectError"),
        (["mcp", "serve", "nothing:Tools"], "there is no module 'nothing'"),
        (["mcp", "serve", "my_shop:refuse"], "takes a Toolset class"),
        (["mcp", "serve", "my_shop:Tools", "--http", "8000"], "is not HOST:PORT"),
        (["mcp", "serve", "my_shop:Tools", "--http", ""], "is not HOST:PORT"),
        (["mcp", "show", "http://127.0.0.1:9/mcp", "--header", "x"], "is not a header"),
        (["mcp", "show", "http://ann:hunter22@127.0.0.1:9/mcp"], "http://ann:***@127.0.0.1:9/mcp"),
        (["tools", "lock", "http://127.0.0.1:9/?api_key=hunter22"], "api_key=***"),
    ],
)
def test_what_can_t_be_used_is_told_and_ends_with_2(
    run: Run, write: Write, arguments: list[str], message: str
) -> None:
    write("my_shop.py", text=SHOP)
    ended = run(*arguments)
    assert ended.code == 2
    assert message in " ".join(ended.err.split())
    assert "hunter22" not in ended.err


def test_http_is_served_with_the_headers_that_a_command_sends(run: Run, write: Write) -> None:
    write("my_shop.py", text=SHOP)
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}"
    command = shlex.split(served("my_shop:Tools").removeprefix("stdio:"))
    process = subprocess.Popen([*command, "--http", place], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == f"lutumpy: serving http://{place}/mcp\n"
        for _ in range(500):
            shown = run("mcp", "show", f"http://{place}/mcp", "--header", "X-Test: 1", "--json")
            if shown.code == 0:
                break
        assert shown.records[0]["name"] == "look"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("over", ["stdio", "http"])
def test_ctrl_c_ends_a_server_with_130(write: Write, over: str) -> None:
    """One is enough, though standard input stays open, as that of a terminal does."""
    write("my_shop.py", text=SHOP)
    command = shlex.split(served("my_shop:Tools").removeprefix("stdio:"))
    options = ["--http", "127.0.0.1:0"] if over == "http" else []
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process: Any = subprocess.Popen([*command, *options], text=True, **pipes)
    with process:
        try:
            if over == "http":
                said = process.stderr.readline()
                assert said.startswith("lutumpy: serving http://127.0.0.1:"), said
                assert not said.endswith(":0/mcp\n")
            else:
                process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
                process.stdin.flush()
                assert json.loads(process.stdout.readline())["id"] == 1
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert "Traceback" not in process.stderr.read()
        finally:
            process.kill()


def test_a_place_that_is_taken_ends_with_2_and_is_not_said_to_be_served(
    run: Run, write: Write
) -> None:
    write("my_shop.py", text=SHOP)
    import socket

    command = shlex.split(served("my_shop:Tools").removeprefix("stdio:"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run([*command, "--http", place], capture_output=True, text=True)
    assert done.returncode == 2
    assert "already in use" in done.stderr
    assert "serving" not in done.stderr
    assert "Traceback" not in done.stderr
