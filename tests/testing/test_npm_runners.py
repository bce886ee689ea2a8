"""The tool runners of the official SDKs from npm against the test server.

`LUTUMPY_NPM` is a folder in whose `node_modules` the packages of `npm/package.json` are; without
it, or without node, nothing runs here. `nox -s npm` makes one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lutumpy.testing import Call, Reply, WireServer, serve

FOLDER = os.environ.get("LUTUMPY_NPM", "")
NODE = shutil.which("node")
SCRIPTS = Path(__file__).parent / "npm"
SECONDS = 60
SCRIPT = [
    Reply("I look.", calls=[Call("weather", {"city": "Oslo"}), Call("weather", {"city": "Rom"})]),
    Reply(calls=[Call("weather", {"city": "Bern"})]),
    Reply("It rains."),
]

if not FOLDER:
    pytest.skip("LUTUMPY_NPM names no folder with the packages", allow_module_level=True)
if NODE is None:
    pytest.skip("there is no node", allow_module_level=True)


def run(name: str, *arguments: str) -> Any:
    """What a script prints. It comes by standard input, so that its imports are looked for in the
    folder.
    """
    package = "@anthropic-ai/sdk" if name == "anthropic_runner" else "openai"
    if not (Path(FOLDER) / "node_modules" / package).is_dir():
        pytest.skip(f"{package} is not in {FOLDER}")
    done = subprocess.run(
        [str(NODE), "--input-type=module", "-", *arguments],
        input=(SCRIPTS / f"{name}.mjs").read_text(),
        capture_output=True,
        text=True,
        cwd=FOLDER,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def accepted(server: WireServer) -> list[dict[str, Any]]:
    """The bodies of the requests, none of which had a problem."""
    assert [(request.status, request.problems) for request in server.requests] == [(200, ())] * len(
        server.requests
    )
    return [request.body for request in server.requests]


@pytest.mark.parametrize("modes", [(), ("stream",)])
def test_the_anthropic_runner_sends_results_alone_and_the_server_holds_the_prefix(
    modes: tuple[str, ...],
) -> None:
    with serve(SCRIPT) as server:
        turns = run("anthropic_runner", server.anthropic_base_url, *modes)
        bodies = accepted(server)
    assert [turn[0] for turn in turns] == ["tool_use", "tool_use", "end_turn"]
    assert turns[-1] == ["end_turn", "text", "It rains."]
    assert [body["thread"]["type"] for body in bodies] == ["create", "continue", "continue"]
    sent = [[block["content"] for block in body["messages"][0]["content"]] for body in bodies[1:]]
    assert sent == [["rain in Oslo", "rain in Rom"], ["rain in Bern"]]
    assert [("tools" in body, "system" in body) for body in bodies] == [
        (True, True),
        (False, False),
        (False, False),
    ]


@pytest.mark.parametrize("modes", [("compact",), ("compact", "stream")])
def test_the_anthropic_runner_compacts(modes: tuple[str, ...]) -> None:
    with serve([SCRIPT[1], Reply("A summary."), Reply("It rains.")]) as server:
        turns = run("anthropic_runner", server.anthropic_base_url, *modes)
        bodies = accepted(server)
    assert turns == [
        ["tool_use", "tool_use", None],
        ["compaction", "compaction", "A summary."],
        ["end_turn", "text", "It rains."],
    ]
    assert bodies[2]["messages"][0]["content"][0]["type"] == "compaction"


@pytest.mark.parametrize("modes", [(), ("stream",)])
def test_run_tools_of_openai_is_taken(modes: tuple[str, ...]) -> None:
    with serve(SCRIPT) as server:
        assert run("openai_runner", server.openai_base_url, *modes) == "It rains."
        bodies = accepted(server)
    results = [
        message["content"] for message in bodies[-1]["messages"] if message["role"] == "tool"
    ]
    assert results == ["rain in Oslo", "rain in Rom", "rain in Bern"]
