"""Calls that a person decides on a web page, in another process than the agent's.

The agent is killed while its calls wait, and another one goes on; the three processes share one
file of SQLite. The page refuses a decision that doesn't fit, with the tool's own words, and of two
people who decide the same call it tells the second.

Run:    python -m examples.approval_page           a scripted model, no key; decides by itself
        python -m examples.approval_page --serve   the same for you in a browser
        python -m examples.approval_page --live    OpenAI, with OPENAI_API_KEY;
                                                   --model NAME for another model,
                                                   OPENAI_BASE_URL for any compatible host
Prints: how many calls the page asks about, what it says to each decision, each result, the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2

from lutumpy import Session
from lutumpy.durable import SqliteStore
from lutumpy.testing import Call, Reply, serve

from .agent import SCOPE, run_agent
from .page import run_page

SCRIPT = [
    Reply(calls=[Call("wipe", {"volume": v}, id=v) for v in ("old", "<new>", "boss")]),
    Reply(text="The old ones are gone, and the boss keeps hers."),
]
DECISIONS: list[dict[str, str]] = [
    {"call": "old", "do": "run", "input": '{"volume": "old"}'},
    {"call": "old", "do": "reject", "reason": "I have seen it too late"},
    {"call": "<new>", "do": "run", "input": '{"volume": "<new>", "days": "many"}'},
    {"call": "<new>", "do": "run", "input": '{"volume": "<new>", "days": 30}'},
    {"call": "boss", "do": "reject", "reason": "ask her"},
]


@contextmanager
def started(role: str, file: Path, model: str) -> Iterator[Iterator[str]]:
    """The lines that a process of this program prints; it is killed at the end of the block."""
    command = [sys.executable, "-m", "examples.approval_page", "--model", model, role, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield iter(process.stdout or ())
        finally:
            process.kill()


def click(page: str, digest: str) -> None:
    """Decide as a browser would, with a decision too late and one that doesn't fit."""
    with httpx2.Client(base_url=page) as browser:
        print(f"the page asks about {browser.get('/').text.count('<form')} calls")
        for form in DECISIONS:
            answer = browser.post("/", data={"scope": SCOPE, "digest": digest, **form})
            print(f"{form['do']} {form['call']}: {answer.status_code} {answer.text}".rstrip())


def tell_story(file: Path, model: str, *, by_hand: bool) -> None:
    session = Session()
    session.push_user("Make room on my volumes.")
    with SqliteStore(file) as store:
        asyncio.run(store.create(SCOPE, session))
        with started("--agent", file, model) as lines:
            print(next(lines, "there is no agent; see above\n"), end="")
        with started("--page", file, model) as lines:
            page = next(lines).strip()
            for held in [] if by_hand else asyncio.run(store.held()):
                click(page, held.digest)
            if by_hand:
                print(f"decide at {page}", flush=True)
            with started("--agent", file, model) as lines:
                print("".join(lines), end="")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    parser.add_argument("--serve", action="store_true", help="you decide, in a browser")
    parser.add_argument("--agent", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--page", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if file := options.agent or options.page:
        asyncio.run((run_agent if options.agent else run_page)(file, options.model))
    elif options.live and "OPENAI_API_KEY" not in os.environ:
        parser.exit(2, "--live needs OPENAI_API_KEY\n")
    else:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as server:
            if not options.live:
                url = server.enter_context(serve(SCRIPT)).openai_base_url
                os.environ.update(OPENAI_BASE_URL=url, OPENAI_API_KEY="none")
            tell_story(Path(folder) / "agent.db", options.model, by_hand=options.serve)


if __name__ == "__main__":
    main()
