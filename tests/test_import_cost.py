"""`import lutumpy` pays for neither SDK, nor for anything else that a turn may never need."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "anthropic",
    "anyio",
    "h11",
    "httpcore",
    "httpcore2",
    "httpx",
    "httpx2",
    "hypothesis",
    "jiter",
    "openai",
    "opentelemetry",
    "starlette",
    "uvicorn",
}


def loaded(statement: str) -> set[str]:
    """Top-level packages that a fresh interpreter has loaded after `statement`."""
    script = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import lutumpy",
        "from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses",
        "from lutumpy.adapters.anthropic import AnthropicMessages",
        "from lutumpy.adapters.openai import OpenAIChat; OpenAIChat('m')",
        "from lutumpy.testing import Call, Reply, ScriptedModel",
        "import lutumpy.cli",
    ],
)
def test_what_is_imported_loads_no_sdk_and_no_http_stack(statement: str) -> None:
    assert loaded(statement) & HEAVY == set()


def test_the_library_loads_nothing_of_its_conveniences() -> None:
    script = "import lutumpy, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    conveniences = ("lutumpy.testing", "lutumpy.cli", "lutumpy.demo", "lutumpy.execution", "lutumpy.loops")
    assert [name for name in done.stdout.split() if name.startswith((*conveniences, "lutumpy.text_tools"))] == []
