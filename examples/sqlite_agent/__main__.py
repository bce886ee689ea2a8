"""The SQLite agent in the terminal: questions about a database file, and changes with your consent.

Run:    python -m examples.sqlite_agent                 a scripted model and a sample database, no
                                                        key
        python -m examples.sqlite_agent --writable      the same with a change, which it asks you
                                                        about
        python -m examples.sqlite_agent --live          OpenAI, with OPENAI_API_KEY;
                                                        --model NAME for another model,
                                                        OPENAI_BASE_URL for any compatible host;
                                                        --database FILE and a question of your own
Prints: what each call gave or why it was rejected, and the answer.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from lutumpy import AdapterError, Model
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Call, Reply, ScriptedModel

from .agent import Agent, NoAnswerError
from .database import Database
from .sample import make_sample
from .tools import Change

PRIVATE = ["customers.phone"]
MOST_ROWS = 2

OWED = (
    "SELECT name, sum(cents) AS cents FROM customers c JOIN orders o ON o.customer = c.id WHERE "
    "NOT paid GROUP BY name"
)

SCRIPT = [
    Reply(calls=[Call("schema")]),
    Reply(
        calls=[
            Call("query", {"sql": OWED}),
            Call("query", {"sql": "SELECT name, phone FROM customers"}),
            Call("change", {"sql": "UPDATE orders SET paid = 1", "why": "to have them paid"}),
        ]
    ),
    Reply(text="Grace owes 120.00 and Ada 9.90. I may not look phone numbers up."),
]
WRITING_SCRIPT = [
    Reply(calls=[Call("schema")]),
    Reply(calls=[Call("change", {"sql": "UPDATE orders SET paid = 1", "why": "Ada has paid."})]),
    Reply(
        calls=[
            Call(
                "change",
                {
                    "sql": "UPDATE orders SET paid = 1 WHERE id = 2",
                    "why": "Ada has paid her order.",
                },
            )
        ]
    ),
    Reply(text="I looked after Ada's order."),
]


def consent(change: Change, rows: int) -> bool:
    """Ask on the terminal; no answer is a no."""
    print(f"{change.why}\n  {change.sql}\n  Rows that change: {rows}.")
    try:
        return input("  Do it? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    parser.add_argument("--database", type=Path, help="a SQLite file; a sample when left out")
    parser.add_argument(
        "--writable", action="store_true", help="allow changes, each with your consent"
    )
    parser.add_argument("question", nargs="?", help="what you want to know")
    options = parser.parse_args()
    script = WRITING_SCRIPT if options.writable else SCRIPT
    llm: Model = OpenAIChat(options.model) if options.live else ScriptedModel(script)
    usual = (
        "Ada has paid her order of 9.90."
        if options.writable
        else "Who owes us how much, and how do I call them?"
    )
    with tempfile.TemporaryDirectory() as directory:
        path: Path = options.database or make_sample(Path(directory) / "shop.db")
        if not path.is_file():
            raise SystemExit(f"there is no file {path}")
        with Database(path, writable=options.writable) as database:
            agent = Agent(
                llm, database, consent=consent, private=PRIVATE, most_rows=MOST_ROWS, tell=print
            )
            try:
                print(agent.ask(options.question or usual))
            except AdapterError as error:
                parser.exit(2, f"{error}\n")
            except NoAnswerError as error:
                raise SystemExit(str(error)) from error


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nStopped.")
