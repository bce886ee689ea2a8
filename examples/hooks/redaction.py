"""Redaction: what tools give is cleaned before it is committed, so that neither the model nor the
transcript has it.

Run:    python examples/hooks/redaction.py            a scripted model, no key
        python examples/hooks/redaction.py --live     OpenAI, with OPENAI_API_KEY;
                                                      --model NAME for another model,
                                                      OPENAI_BASE_URL for any compatible host
Prints: each result as the model reads it, and the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from dataclasses import replace

from lutumpy import (
    AdapterError,
    Finished,
    Model,
    NeedsTools,
    Session,
    TextPart,
    ToolMetadata,
    ToolResult,
    Toolset,
    hook_impl,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 8


@tool_fn(effect="read")
async def read_config(name: str) -> str:
    """Read a configuration file.

    Args:
        name: `main` or `backup`.
    """
    if name != "main":
        raise LookupError("no such file for the key sk-live-9876543210")
    return "endpoint = https://api.example\nkey = sk-live-0123456789\nowner = ann@example.com"


class Config(Toolset):
    read_config = tool(read_config)


class Redact:
    """Replaces keys and mail addresses in every result, those of failed tools too."""

    _PATTERNS = ((re.compile(r"sk-live-\w+"), "[key]"), (re.compile(r"[\w.]+@[\w.]+\w"), "[mail]"))

    def _clean(self, text: str) -> str:
        for pattern, word in self._PATTERNS:
            text = pattern.sub(word, text)
        return text

    @hook_impl(trylast=True)
    def any_result_hook(self, metadata: ToolMetadata, result: ToolResult) -> ToolResult:
        if isinstance(result.content, str):
            return replace(result, content=self._clean(result.content))
        parts = [
            TextPart(self._clean(p.text)) if isinstance(p, TextPart) else p for p in result.content
        ]
        return replace(result, content=tuple(parts))


async def talk(llm: Model, question: str) -> str:
    hooks = Config.hooks().with_hooks(Redact())
    session = Session()
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        match await session.text_turn(llm, tools=Config).collect():
            case Finished(result=result):
                return result.refusal or result.text
            case NeedsTools(round=round):
                results = []
                for call in round.calls:
                    try:
                        results.append(call.complete(await call.call()))
                    except LookupError as error:
                        # The message may say more than it should: it is cleaned before the model
                        # reads it.
                        results.append(call.fail(error, reveal=True))
                reviewed = await hooks.review(results)
                for told in reviewed:
                    print(told.content)
                round.commit(session, reviewed)
    return f"No answer after {MAX_ROUNDS} rounds."


SCRIPT = [
    Reply(calls=[Call("read_config", {"name": "main"}), Call("read_config", {"name": "backup"})]),
    Reply(text="The endpoint is https://api.example."),
]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    llm: Model = OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)
    try:
        print(await talk(llm, "Which endpoint do we use, and which one is in the backup?"))
    except AdapterError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    asyncio.run(main())
