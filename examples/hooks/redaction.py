"""Redaction: what tools give is cleaned before it is committed, so that neither the model nor the transcript has it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

from lutumpy import (
    Finished,
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
from lutumpy.testing import Call, Reply, ScriptedModel


@tool_fn(effect="read")
async def read_config(name: str) -> str:
    """Read a configuration file."""
    if name == "missing":
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
        parts = [TextPart(self._clean(p.text)) if isinstance(p, TextPart) else p for p in result.content]
        return replace(result, content=tuple(parts))


SCRIPT = [
    Reply(calls=[Call("read_config", {"name": "main"}), Call("read_config", {"name": "missing"})]),
    Reply(text="The endpoint is https://api.example."),
]


async def main() -> None:
    llm = ScriptedModel(SCRIPT)
    hooks = Config.hooks().with_hooks(Redact())
    session = Session()
    session.push_user("Which endpoint do we use?")
    while True:
        match await session.text_turn(llm, tools=Config).collect():
            case NeedsTools(round=round):
                results = []
                for call in round.calls:
                    try:
                        results.append(call.complete(await call.call()))
                    except LookupError as error:
                        results.append(call.fail(error))
                round.commit(session, await hooks.review(results))
            case Finished(result=result):
                for message in llm.requests[-1]["messages"]:
                    if message["role"] == "tool":
                        print(message["content"])
                print(result.text)
                return


if __name__ == "__main__":
    asyncio.run(main())
