"""`import lutumpy` pays for neither SDK, nor for anything else that a turn may never need."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAVY = {
    "dbos",
    "temporalio",
    "anthropic",
    "aiobotocore",
    "anyio",
    "boto3",
    "botocore",
    "google",
    "h11",
    "httpcore",
    "httpcore2",
    "httpx",
    "httpx2",
    "hypothesis",
    "jiter",
    "mcp",
    "mcp_types",
    "openai",
    "opentelemetry",
    "starlette",
    "uvicorn",
}


def loaded(statement: str) -> set[str]:
    """Top-level packages that a fresh interpreter has loaded after `statement`."""
    script = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "import lutumpy",
        "from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses",
        "from lutumpy.adapters.anthropic import AnthropicMessages",
        "from lutumpy.adapters.openai import OpenAIChat; OpenAIChat('m')",
        "from lutumpy.adapters.gemini import Gemini; Gemini('m')",
        "from lutumpy.adapters.bedrock import BedrockConverse; BedrockConverse('m')",
        "from lutumpy.apis import by_name; by_name('adapter'); by_name('rules')",
        "from lutumpy.testing import Call, Reply, ScriptedModel",
        "from lutumpy.text_tools import TagToolParser, TextTools",
        "from lutumpy.tool_doctor import check_tools",
        "import lutumpy.cli",
    ],
)
def test_what_is_imported_loads_no_sdk_and_no_http_stack(statement: str) -> None:
    assert loaded(statement) & HEAVY == set()


def test_the_library_loads_nothing_of_its_conveniences() -> None:
    script = "import lutumpy, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    conveniences = (
        "budget",
        "cli",
        "demo",
        "execution",
        "local",
        "loops",
        "mcp",
        "otel",
        "web",
        "page",
        "testing",
        "text_tools",
        "tool_doctor",
        "toolclad",
    )
    names = tuple(f"lutumpy.{name}" for name in conveniences)
    assert [name for name in done.stdout.split() if name.startswith(names)] == []


def test_beside_pydantic_the_library_loads_nothing() -> None:
    """Not `json`, `logging`, `hashlib`, `asyncio`, `importlib.metadata`, nor anything that isn't
    there already.
    """
    script = """
import sys
from pydantic import BaseModel, TypeAdapter
before = set(sys.modules)
import lutumpy
print(*[name for name in sys.modules if name not in before and name.partition(".")[0] != "lutumpy"])
"""
    # What counts coverage in subprocesses would load some of these before.
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=quiet
    )
    assert done.stdout.split() == []


def test_nothing_makes_pydantic_build_a_model_before_a_tool_is_declared() -> None:
    """The first model loads a third of pydantic, and `importlib.metadata` for its plugins; pluggy
    waits for the first hook.
    """
    script = "import lutumpy, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    late = {
        "importlib.metadata",
        "pluggy",
        "pydantic.fields",
        "pydantic.root_model",
        "pydantic.types",
        "docstring_parser",
    }
    assert late & set(done.stdout.split()) == set()
