"""Proposals: pass after pass over the problems that are left, until none is found that can be mended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lutumpy.apis import Api, serves, serving
from lutumpy.doctor.check import check_messages, plain_json
from lutumpy.doctor.editor import Editor, copied
from lutumpy.doctor.foreign import convert_messages
from lutumpy.doctor.mending import Stage
from lutumpy.doctor.repair import Repair
from lutumpy.errors import Problem
from lutumpy.rules.hosts import is_compatible, is_softened

__all__ = ["propose_repairs"]

ALSO = frozenset(
    {
        "anthropic.nesting",
        "anthropic.prefill_whitespace",
        "anthropic.toolset_name",
        "chat.arguments_json",
        "chat.call_id",
        "chat.duplicate_call_id",
        "chat.encoding",
        "chat.nesting",
        "responses.arguments_json",
        "responses.duplicate_call_id",
        "responses.duplicate_output",
        "responses.encoding",
        "responses.nesting",
    }
)
"""Rules whose breaches are mended although a refusal isn't sure: a mistake beyond doubt, and the repair loses nothing."""

_MOST_PASSES = 60

_READABLE = 2
"""The stages after which every value is one that JSON knows: messages of other APIs are read then, before anything is mended."""


def propose_repairs(
    api: Api,
    messages: Any,
    *,
    tools: Sequence[Any] | None = None,
    server_held_prefix: bool = False,
    system: Any = None,
    model: str | None = None,
    thinking: str | None = None,
    compatible: bool = False,
    host: str | None = None,
    thorough: bool = False,
) -> list[Repair]:
    """What would make the messages acceptable, one repair at a time; nothing is changed, and no JSON makes it raise.

    Proposed is what mends a problem that is refused for sure, and a few mistakes that only some hosts refuse (repeated ids,
    a second output, unreadable arguments). Nothing is guessed: what needs a decision of yours gets no repair, and is still
    in `check_messages` afterwards. A transcript without such problems gets none, and so does a repaired one.

    Args:
        api: The wire that the messages are for.
        messages: The list of messages or input items: JSON values, or objects of the SDKs.
        tools: As for `check_messages`, and so are the arguments up to `compatible`.
        server_held_prefix: The start of the conversation is at the server. Not for Chat.
        system: Anthropic's top-level `system`.
        model: The request's model.
        thinking: The `type` of Anthropic's `thinking` parameter.
        compatible: The host is another than the vendor: what OpenAI or Anthropic alone refuses is left as it is.
        host: The host's address or name, as for `check_messages`.
        thorough: Mend also what only some hosts refuse, and what works badly: ids of earlier turns used again, results in
            another order than their calls, text behind calls, calls that were cut off.

    Returns:
        The repairs in the order in which they are applied; each is made for the messages as they are after those before.

    Raises:
        ValueError: `api` is none of the three, or `host` is neither a name that is known nor an address.
    """
    document = copied(plain_json(messages))
    outside = [*_entries(plain_json(tools)), *_entries(plain_json(system))]
    editor = Editor(document if isinstance(document, list) else [], outside)
    softens = compatible or (host is not None and is_compatible(api, host))
    for _ in range(_MOST_PASSES):
        found = check_messages(
            api,
            editor.document,
            tools=tools,
            server_held_prefix=server_held_prefix,
            system=system,
            model=model,
            thinking=thinking,
            compatible=compatible,
            host=host,
        )
        if not _pass(api, editor, [p for p in found if _wanted(api, p, softens, thorough)], found):
            break
    return editor.repairs


def _entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _wanted(api: Api, problem: Problem, compatible: bool, thorough: bool) -> bool:
    if thorough or problem.certainty == "refused":
        return True
    softened = compatible and is_softened(serving(api, "rules").PREFIX, problem)
    return problem.rule in ALSO and not softened


def stages_of(api: Api) -> tuple[tuple[frozenset[str], Stage], ...]:
    """The rules of an API that are mended, in the order in which that is tried, and what mends them."""
    stages: tuple[tuple[frozenset[str], Stage], ...] = ()
    if serves(api, "repairs"):
        stages = serving(api, "repairs").STAGES
    return stages


def _pass(api: Api, editor: Editor, problems: list[Problem], found: list[Problem]) -> bool:
    """Mend the first stage that can be mended; whether anything was.

    Args:
        api: The wire.
        editor: The messages.
        problems: What is to be mended.
        found: All problems.
    """
    before = len(editor.repairs)
    editor.next_pass()
    for number, (rules, stage) in enumerate(stages_of(api)):
        if number == _READABLE:
            convert_messages(api, editor, found)
            if len(editor.repairs) > before:
                return True
        chosen = [problem for problem in problems if problem.rule in rules]
        if chosen:
            stage(editor, chosen)
            if len(editor.repairs) > before:
                return True
    return False
