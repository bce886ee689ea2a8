"""The process that llama.cpp's server runs in: started by `lutumpy.local.server`, and gone when
that closes its input.

A program of its own that imports nothing of the package: it is ready sooner, and what the native
code does on a bad day (a crash, a log on standard error) isn't done to the user's process. Input:
one line of JSON. Output: one line of JSON, when the server is ready or can't be. Standard error:
llama.cpp's log.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from typing import Any

ORPHAN_SECONDS = 1.0


def main() -> None:
    setup: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    # Whatever native code prints goes to the log; the answer has a descriptor of its own.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _end_with_parent(setup["parent"])
    sys.path[:] = setup["path"]
    try:
        server = _start_server(setup["parameters"])
    except Exception as error:
        answer.write(json.dumps({"error": f"{type(error).__name__}: {error}"}) + "\n")
        answer.close()
        os._exit(1)
    answer.write(json.dumps({"url": server.listening_address}) + "\n")
    answer.close()
    sys.stdin.buffer.read()
    # Not by the interpreter's way out: that waits for answers still being written.
    os._exit(0)


def _start_server(parameters: dict[str, Any]) -> Any:
    xllamacpp: Any = importlib.import_module("xllamacpp")

    params = xllamacpp.CommonParams()
    for name, value in parameters.items():
        *parents, last = name.split(".")
        owner: Any = params
        for parent in parents:
            owner = getattr(owner, parent)
        # Set on what is there already: a misspelt name would otherwise do nothing.
        current = getattr(owner, last)
        setattr(owner, last, type(current)(value) if isinstance(current, set) else value)
    return xllamacpp.Server(params)


def _end_with_parent(parent: int) -> None:
    """End with the parent also when something else still holds the other end of the input, as a
    fork of the parent may.
    """

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == parent:
            pause.wait(ORPHAN_SECONDS)
        os._exit(0)

    if os.name == "posix":
        threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main()
