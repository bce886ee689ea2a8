"""Programs as tools, by ToolClad manifests: the loop around them, with what such a loop needs.

The manifests in `examples/manifests/` say which programs a model may run, with which arguments, and
which of them a person approves. The loop is yours. It has an end, whatever the model does; a time
for each round, outside of the time that each program has; it runs no call twice; it logs without
output, and every run leaves its evidence.

Run:    python examples/manifest_tools.py            a scripted model, no key
        python examples/manifest_tools.py --live     OpenAI, with OPENAI_API_KEY;
                                                     --model NAME for another model,
                                                     OPENAI_BASE_URL for any compatible host
Prints: what a person was asked, the log, the beginning of each result, the evidence, and the
answer.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import shlex
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lutumpy import AdapterError, Finished, Model, NeedsTools, Reject, Session
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.execution import ExecutionReport, ToolExecutor, preview
from lutumpy.hooks import BaseToolCall
from lutumpy.testing import Call, Reply, ScriptedModel
from lutumpy.toolclad import CladTools, load_manifests

MANIFESTS = Path(__file__).parent / "manifests"
MAX_ROUNDS = 15
ROUND_SECONDS = 60.0  # of all calls of a round; a program has the time of its manifest, or less
PREVIEW_BYTES = 75


class EvidenceStore:
    """Keeps every envelope as a line of JSON, where no model reads."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def keep(self, name: str, envelope: Mapping[str, Any]) -> None:
        with self.file.open("a") as lines:
            lines.write(json.dumps(envelope) + "\n")

    def envelopes(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file.read_text().splitlines()]


async def talk(llm: Model, question: str, clad: CladTools) -> str:
    async def approve(call: BaseToolCall) -> bool | Reject:
        """Here a person would be asked, in a chat or on a page; this one allows backups only."""
        manifest = clad.manifest_of(call)
        if manifest is None:
            return False
        allowed = str(call.arguments["target"]).startswith("backup/")
        command = shlex.join(manifest.command(call.arguments))
        print(f"may this run? {command}: {'yes' if allowed else 'no'}")
        return True if allowed else Reject("copies go into backup/ only")

    policy = clad.policy(approve)
    # Equal calls by name and arguments run once; one at a time, since all work in one folder.
    executor = ToolExecutor(deduplicate=True, max_concurrency=1)
    session = Session()
    session.push_user(question)
    text = ""
    for _ in range(MAX_ROUNDS):
        outcome = await session.text_turn(llm, tools=clad.toolset).collect()
        if isinstance(outcome, Finished):
            return outcome.result.refusal or outcome.result.text
        assert isinstance(outcome, NeedsTools)
        text = outcome.round.text or text
        for issue in outcome.round.issues:
            print(f"not run: {issue.metadata.name}: {issue.detail}")
        plan = await outcome.round.apply_hooks(policy)
        report = ExecutionReport()
        running = executor.run(plan.pending, clad.dispatch, report=report)
        with contextlib.suppress(asyncio.TimeoutError):
            # What doesn't end in time is stopped, and its result says so.
            await asyncio.wait_for(running, ROUND_SECONDS)
        results = report.results(plan.pending)
        for result in results:
            if isinstance(result.output, dict):
                shown = json.dumps(result.output["results"], ensure_ascii=False)
                print(f"{result.metadata.name}: {preview(shown, PREVIEW_BYTES)}")
        plan.commit(session, results)
    return f"{text} (Ended after {MAX_ROUNDS} rounds.)".lstrip()


SCRIPT = [
    Reply(
        text="I will look.",
        calls=[
            Call("count_lines", {"file": "books.csv"}),
            Call("read_columns", '{"columns": "1,3", "file": "books.csv"}'),
            Call("read_columns", '{"file":"books.csv","columns":"1,3"}'),
            Call("count_lines", {"file": "/etc/passwd"}),
            Call("count_lines", {"file": "films.csv"}),
        ],
    ),
    Reply(
        calls=[
            Call("copy_file", {"source": "books.csv", "target": "backup/books.csv"}),
            Call("copy_file", {"source": "books.csv", "target": "films.csv"}),
        ]
    ),
    Reply(text="There are three books, all of them in the backup now."),
]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    llm: Model = OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)
    # Tool and status; of what a program prints, the log has nothing.
    log = logging.StreamHandler(sys.stdout)
    log.setFormatter(logging.Formatter("log: %(tool)s %(status)s"))
    logging.getLogger("lutumpy.execution").addHandler(log)
    logging.getLogger("lutumpy.execution").setLevel(logging.INFO)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "place")
        (place / "backup").mkdir(parents=True)
        (place / "books.csv").write_text("title,year,copies\nEmma,1815,2\nDüne,1965,0\n家,1933,1\n")
        store = EvidenceStore(Path(folder, "evidence.jsonl"))
        # Once, when the program starts: every problem of every file is in one error.
        clad = load_manifests(MANIFESTS, cwd=place, timeout=10.0, evidence=store.keep)
        try:
            text = await talk(llm, "How many books are there? Make a backup.", clad)
        except AdapterError as error:
            parser.exit(2, f"{error}\n")
        for envelope in store.envelopes():
            print(f"evidence: {envelope['status']}: {envelope['command']}")
    print(text)


if __name__ == "__main__":
    asyncio.run(main())
