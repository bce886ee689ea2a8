"""The opt-in module is not imported by the library, and says what it needs."""

from __future__ import annotations

import subprocess
import sys


def python(script: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout


def test_without_anyio_the_error_names_the_extra() -> None:
    script = """
import sys
sys.modules["anyio"] = None
import lutumpy
try:
    import lutumpy.execution
except ImportError as error:
    print(error)
"""
    assert (
        python(script) == "lutumpy.execution needs anyio; install it with: "
        'python -m pip install ".[execution]" (in a clone)\n'
    )


def test_it_loads_neither_trio_nor_an_sdk() -> None:
    unwanted = "{'trio', 'openai', 'anthropic', 'httpx'}"
    script = f"import lutumpy.execution, sys; print(sorted({unwanted} & set(sys.modules)))"
    assert python(script) == "[]\n"


def test_every_public_name_is_there() -> None:
    import lutumpy.execution as execution

    assert [name for name in execution.__all__ if not hasattr(execution, name)] == []
