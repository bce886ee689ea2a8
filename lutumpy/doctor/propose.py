"""Proposals: pass after pass over the problems that are left, until none can be mended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lutumpy.apis import Api, serving
from lutumpy.doctor.bound_reasoning import BoundReasoning
from lutumpy.doctor.catalogue import Row, StageRow, repairs_of
from lutumpy.doctor.check import check_messages, find_move, is_other_host, plain_json
from lutumpy.doctor.editor import Editor, copied
from lutumpy.doctor.repair import Repair
from lutumpy.errors import Problem
from lutumpy.rules.shape import ApiRules

if TYPE_CHECKING:
    from lutumpy.core.turn_origin import TurnOrigin
    from lutumpy.rules.host_facts import HostFacts

__all__ = ["open_calls", "propose_repairs"]

# No history needs so many: each stage mends at most a few times. The bound only keeps a mistake in
# a table, two repairs that undo each other, from running for ever.
_MOST_PASSES = 60


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
    host: str | HostFacts | None = None,
    origin: TurnOrigin | None = None,
    before: Mapping[str, Any] | None = None,
    thorough: bool = False,
    close_open: bool = False,
) -> list[Repair]:
    """What would make the messages acceptable, one repair at a time.

    Nothing is changed, and no JSON makes it raise. Repairs are proposed for problems that are sure
    to be refused, and for a few mistakes that only some hosts refuse (repeated ids, a second
    output, unreadable arguments). Nothing is guessed: a problem that needs your decision gets no
    repair, and `check_messages` still reports it afterwards. A history without such problems gets
    no repairs, and neither does a repaired one.

    Args:
        api: The API that the messages are for.
        messages: The list of messages or input items: JSON values, or objects of the SDKs.
        tools: As for `check_messages`, and so are the arguments up to `compatible`.
        server_held_prefix: The start of the conversation is at the server. Not for Chat
            Completions.
        system: The top-level `system` of Messages.
        model: The request's model.
        thinking: The `type` of the `thinking` parameter of Messages.
        compatible: The host is not the vendor's: what the vendor alone refuses is left as it is.
        host: The host's address, name or facts, as for `check_messages`.
        origin: Who said the turns of the model: what the host would not get of them is taken away.
        before: The body of the request before this one, as for `check_messages`.
        thorough: Mend also what only some hosts refuse, and what works badly: ids of earlier turns
            used again, results in another order than their calls, text behind calls, calls that
            were cut off.
        close_open: Close as interrupted the calls that may stay open and have no result yet; they
            are left as they are otherwise (rule LR18).

    Returns:
        The repairs in the order in which they are applied; each is made for the messages as the
        repairs before it leave them.

    Raises:
        UnknownApiError: there is no such API.
        ValueError: `host`, or that of `origin`, is neither a known name nor an address.
    """
    rules: ApiRules = serving(api, "rules")
    document = copied(plain_json(messages, rules.SHAPE.blob_keys))
    outside = [*_entries_of(plain_json(tools)), *_entries_of(plain_json(system))]
    repairs = repairs_of(api)
    ties = repairs.ties() if repairs.ties is not None else None
    # A wrong host is an error, whatever can be mended.
    elsewhere, move = compatible or is_other_host(api, host), find_move(api, host, model, origin)
    editor = Editor(
        document if isinstance(document, list) else [],
        outside,
        ties,
        facts=None if move is None else move.facts,
        bound=_bound_reasoning(rules, model or _model_of(before)),
    )
    if not repairs.stages:
        return []
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
            origin=origin,
            before=before,
        )
        if close_open:
            found = [*found, *open_calls(api, editor.document)]
        wanted = found
        if not thorough:
            wanted = [p for p in found if _is_wanted(repairs.rows, p, elsewhere)]
        if _mend_first_stage(repairs.stages, editor, wanted, found):
            continue
        if not editor.drop_left_over(f"{rules.PREFIX}.reasoning_bound"):
            break
    return editor.repairs


def open_calls(api: Api, messages: Any) -> list[Problem]:
    """The calls of a history that may stay open and have no result yet, which is no problem: each
    as the problem that it would be if it might not.

    Args:
        api: The API that the messages are for.
        messages: The list of messages or input items.

    Raises:
        UnknownApiError: there is no such API.
    """
    find = getattr(serving(api, "rules"), "find_open_calls", None)
    found: list[Problem] = [] if find is None else find(plain_json(messages))
    return found


def _model_of(before: Mapping[str, Any] | None) -> str | None:
    model = None if before is None else before.get("model")
    return model if isinstance(model, str) else None


def _bound_reasoning(rules: ApiRules, model: str | None) -> BoundReasoning | None:
    """What goes with what comes before it, for a model that was named and binds its reasoning."""
    find = getattr(rules, "reasoning_binding", None)
    if find is None or model is None:
        return None
    binding = find()
    return (
        BoundReasoning(binding, rules.SHAPE.messages_key, model) if binding.binds(model) else None
    )


def _entries_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_wanted(rows: Mapping[str, Row], problem: Problem, elsewhere: bool) -> bool:
    """Whether a problem is mended without being thorough."""
    if problem.certainty == "refused":
        return True
    row = rows.get(problem.rule)
    if row is None or not row.mending.although_unsure:
        return False
    return not (elsewhere and row.rule.vendor_only)


def _mend_first_stage(
    stages: Sequence[StageRow], editor: Editor, wanted: list[Problem], found: list[Problem]
) -> bool:
    """Mend what the first stage with a repair can mend; whether there was one.

    Args:
        stages: The stages of the API.
        editor: The messages.
        wanted: The problems that are to be mended.
        found: All problems.
    """
    before = len(editor.repairs)
    editor.next_pass()
    for rules, mend, any_certainty in stages:
        problems = found if any_certainty else wanted
        chosen = [problem for problem in problems if problem.rule in rules]
        if chosen:
            mend(editor, chosen)
            if len(editor.repairs) > before:
                return True
    return False
