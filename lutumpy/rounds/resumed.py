"""A plan taken up again from a dump: checked as a whole, then loaded (rules P12 to P15)."""

# A dump comes from outside: it may be old, cut off, edited, or of another conversation. Its checks
# have this order, and the first one that fails is the `kind` of the `PlanError`:
#
#   format, version       it is a dump of a plan, and one that this release reads
#   unsigned, tampered    one of the known keys has signed it, where that is asked for
#   tampered              its digest is that of what it holds
#   scope                 it belongs to this conversation
#   format                its turn and its calls are whole, and belong to each other
#   position, committed   what came before the round is in the transcript; the round isn't
#   schema                the tools are those that were decided on, with `drift="refuse"`
#   input                 each input fits its tool
#
# Only then is the answer open again. Hooks aren't asked, and arguments aren't decoded again: what
# was decided on is what runs.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast, get_args

from lutumpy.core.call_place import CallPlace
from lutumpy.core.dump_checks import WRONG, expect
from lutumpy.core.dump_items import load_turn
from lutumpy.core.items import AssistantTurn, ToolMetadata
from lutumpy.core.transcript import Transcript
from lutumpy.errors import PlanError, TranscriptError
from lutumpy.hooks.audit import Run
from lutumpy.hooks.people import AskedHook, LoadedRun
from lutumpy.hooks.pipeline import CallOrIssue, CallState, Decision, Held
from lutumpy.plain.safe_text import explain_misfit, safe_repr
from lutumpy.rounds.open_answer import OpenAnswer
from lutumpy.rounds.portable import FORMAT, VERSION
from lutumpy.rounds.target import Position
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.call_identity import written_arguments
from lutumpy.tools.calls import (
    BaseToolCall,
    HandledTool,
    IssueReason,
    RejectedToolCall,
    ToolCall,
    ToolCallIssue,
)
from lutumpy.tools.portable_input import NotPortable, load_input
from lutumpy.tools.results import ToolResult
from lutumpy.tools.selectors import BaseToolset
from lutumpy.tools.signing import check_digest, check_signature, to_json

__all__ = ["Drift", "LoadedPlan", "load_plan"]

Drift = Literal["refuse", "reject"]
"""What becomes of a dump that calls tools which are others now."""

CHANGED = (
    "The tool changed while this call waited for a decision, so it was not run. Look at the tool "
    "as it is described now, and call it again if that is still what is wanted."
)


class LoadedPlan(NamedTuple):
    """What a plan is made of.

    Attributes:
        answer: The model's answer, open again.
        issues: The calls that can't be executed.
        states: The state of every call.
        runs: What is known of the hooks that were asked.
    """

    answer: OpenAnswer
    issues: tuple[ToolCallIssue, ...]
    states: list[CallState]
    runs: tuple[Run, ...]


def load_plan(
    data: Any,
    transcript: Transcript,
    toolset: type[BaseToolset],
    scope: str,
    verify: Mapping[str, bytes] | None,
    drift: Drift,
    *,
    counted: bool,
) -> LoadedPlan:
    """The plan of a dump, checked in the order of P13; see `ToolRoundPlan.resume`.

    Raises:
        PlanError: it can't be taken up; nothing was changed.
        ValueError: `drift` is neither.
    """
    if drift not in get_args(Drift):
        raise ValueError(f"drift= is 'refuse' or 'reject', not {drift!r}; nothing was loaded")
    plan = _read_envelope(data)
    if verify is not None:
        check_signature(plan, verify)
    check_digest(plan)
    if plan.get("scope") != scope:
        raise PlanError(
            "scope",
            f"the plan belongs to the conversation {plan.get('scope')!r}, not to {scope!r}; "
            "nothing was loaded",
        )
    try:
        turn = load_turn(expect(plan["turn"], dict, "turn"))
        calls = _read_calls(plan, turn)
        position, origin = _find_position(plan, transcript, turn)
        digests = expect(expect(plan["toolset"], dict, "toolset")["tools"], dict, "tools")
        changed = _changed_tools(calls, digests, toolset)
        if changed and drift == "refuse":
            raise PlanError(
                "schema",
                f"the tools {', '.join(changed)} are not those that were decided on; "
                "nothing was loaded",
                changed,
            )
        loader = _CallLoader(toolset, origin, frozenset(changed))
        loaded = [loader.load(call) for call in calls]
    except (TranscriptError, *WRONG) as error:
        if isinstance(error, PlanError):
            raise
        what = explain_misfit(error)
        raise PlanError("format", f"the plan is invalid: {what}; nothing was loaded") from error
    entries = [entry for entry, _ in loaded]
    states = [state for _, state in loaded]
    answer = OpenAnswer.reopen(turn, entries, transcript, position, received=counted)
    issues = tuple([state for state in states if isinstance(state, ToolCallIssue)])
    return LoadedPlan(answer, issues, states, (loader.run(),))


def _read_envelope(data: Any) -> Mapping[str, Any]:
    plan = to_json(data)
    if not isinstance(plan, Mapping) or plan.get("format") != FORMAT:
        raise PlanError("format", f"this is no dump of a plan ({FORMAT}); nothing was loaded")
    version = plan.get("version")
    if type(version) is not int or version != VERSION:
        raise PlanError(
            "version",
            f"the plan has the version {safe_repr(version)}, this release reads {VERSION}; "
            "nothing was loaded",
        )
    return plan


def _read_calls(plan: Mapping[str, Any], turn: AssistantTurn) -> list[Mapping[str, Any]]:
    """The calls of a dump; they must be those of its turn."""
    calls = expect(plan["calls"], list, "calls")
    listed = [(call["call_id"], call["tool"], call["arguments"]) for call in calls]
    if not listed or listed != [(call.id, call.name, call.arguments) for call in turn.calls]:
        raise ValueError("its calls are not those of its turn")
    return cast("list[Mapping[str, Any]]", calls)


def _find_position(
    plan: Mapping[str, Any], transcript: Transcript, turn: AssistantTurn
) -> tuple[Position, CallPlace]:
    """Where the round begins in the transcript, and the place of its calls.

    Raises:
        PlanError: `position` or `committed`.
    """
    at = expect(plan["at"], dict, "at")
    items = expect(at["items"], int, "at.items")
    length, revision = transcript.position()
    committed = transcript.committed(length)
    if not 0 <= items <= committed:
        raise _other_position(f"it has {committed} items, and {items} stood before the round")
    if committed > items:
        length = _length_at(transcript, items)
        revision = -1  # items were added since: only `rebase=True` commits then
    origin = CallPlace(transcript, length, turn.calls)
    if origin.digest().hex() != at["digest"]:
        raise _other_position("its first items are others")
    if transcript.has_turn(turn, length):
        raise PlanError(
            "committed", "the calls of the plan are in the transcript already; nothing was loaded"
        )
    return Position(length, revision), origin


def _length_at(transcript: Transcript, items: int) -> int:
    """How many items the transcript had when so many of them were committed."""
    length = items
    while transcript.committed(length) < items:
        length += 1
    return length


def _other_position(why: str) -> PlanError:
    return PlanError(
        "position",
        f"what stood before the round is not in this session: {why}; nothing was loaded",
    )


def _changed_tools(
    calls: Sequence[Mapping[str, Any]], digests: Mapping[str, Any], toolset: type[BaseToolset]
) -> list[str]:
    """The tools that are called and are not what they were (rule P14)."""
    called = [c["tool"] for c in calls if c["standing"] != "issue" and "server_label" not in c]
    known = toolset.__lutumpy_table__.by_name
    changed: list[str] = []
    for name in dict.fromkeys(called):
        selector = known.get(name)
        if selector is None or selector.tool.digest != digests[name]:
            changed.append(name)
    return changed


class _CallLoader:
    """Loads the calls of one dump.

    Args:
        toolset: Where their tools are.
        origin: Their place in the conversation.
        changed: The tools that are others now; calls of these are rejected.
    """

    def __init__(
        self, toolset: type[BaseToolset], origin: CallPlace, changed: frozenset[str]
    ) -> None:
        self._toolset = toolset
        self._origin = origin
        self._changed = changed
        self._asked: dict[str, Sequence[AskedHook]] = {}
        self._edited: set[str] = set()

    def run(self) -> LoadedRun:
        """What the loaded calls say of the hooks that were asked."""
        return LoadedRun(self._asked, frozenset(self._edited))

    def load(self, data: Mapping[str, Any]) -> tuple[CallOrIssue, CallState]:
        """One call as it was read, and its state."""
        make = ToolMetadata.of_text if data.get("is_text") is True else ToolMetadata
        metadata = make(data["call_id"], data["tool"], data["arguments"])
        standing = data["standing"]
        if standing == "issue":
            return _both(_load_issue(metadata, data))
        if "server_label" in data:
            entry: BaseToolCall = ApprovalRequest(
                metadata, expect(data["server_label"], str, "server_label"), self._origin
            )
        elif metadata.name in self._changed:
            return _both(ToolCallIssue(metadata, "not_available", CHANGED))
        else:
            entry = self._load_call(metadata, data)
        self._note_asked(metadata.id, data)
        return entry, _STATES[standing](entry, data)

    def _load_call(self, metadata: ToolMetadata, data: Mapping[str, Any]) -> BaseToolCall:
        selector = self._toolset.selector(metadata.name)
        try:
            value = load_input(selector.tool, data["input"])
        except NotPortable as error:
            raise PlanError(
                "input",
                f"the input of call {metadata.id!r} of {metadata.name!r} doesn't fit the tool any "
                f"more: {error}; nothing was loaded",
            ) from error
        call: BaseToolCall = ToolCall(metadata, value, selector, (), self._origin)
        if data["standing"] in ("pending", "held"):
            call.key = expect(data["key"], str, "key")
            equal_to = data.get("equal_to")
            call.equal_to = written_arguments(call) if equal_to is None else equal_to
            expect(call.equal_to, str, "equal_to")
        if expect(data["edited"], bool, "edited"):
            self._edited.add(metadata.id)
        return call

    def _note_asked(self, call_id: str, data: Mapping[str, Any]) -> None:
        hooks = data.get("hooks")
        if hooks is None and "by" in data:
            did = {"handled": "handled", "rejected": "rejected", "held": "held"}
            word = did.get(data["standing"], "edited" if data.get("edited") else "passed")
            if word == "handled" and "server_label" in data:
                word = "approved"
            hooks = [{"by": data["by"], "source": data["source"], "did": word}]
        self._asked[call_id] = [
            AskedHook(*[expect(hook[name], str, name) for name in AskedHook._fields])
            for hook in hooks or ()
        ]


def _both(issue: ToolCallIssue) -> tuple[ToolCallIssue, ToolCallIssue]:
    return issue, issue


def _load_issue(metadata: ToolMetadata, data: Mapping[str, Any]) -> ToolCallIssue:
    reason, repeat = data["reason"], expect(data["repeat"], int, "repeat")
    if reason not in get_args(IssueReason) or repeat < 0:
        raise ValueError(f"no issue has the reason {reason!r} and {repeat!r} repeats")
    return ToolCallIssue(metadata, reason, expect(data["detail"], str, "detail"), repeat)


def _load_pending(entry: BaseToolCall, data: Mapping[str, Any]) -> CallState:
    return entry


def _load_held(entry: BaseToolCall, data: Mapping[str, Any]) -> CallState:
    reason, by = [expect(data[name], str, name) for name in ("reason", "by")]
    own = entry if isinstance(entry, ApprovalRequest) else _same_call(entry)
    return Held(own, reason, _load_source(data), by)


def _same_call(entry: BaseToolCall) -> BaseToolCall:
    call = entry.holding(entry.input)
    call.equal_to = entry.equal_to
    return call


def _load_handled(entry: BaseToolCall, data: Mapping[str, Any]) -> CallState:
    result = ToolResult.load(data["result"], entry)
    output: Any = result.output
    if isinstance(entry, ApprovalRequest):
        output = True
    elif output is None and entry.tool.output_type is not type(None):
        output = result.content
    handled: HandledTool[Any, Any]
    handled = HandledTool(entry.metadata, entry.input, output, entry.selector)
    by = expect(data["by"], str, "by")
    return Decision(handled, result, _load_source(data), by)


def _load_rejected(entry: BaseToolCall, data: Mapping[str, Any]) -> CallState:
    result = ToolResult.load(data["result"], entry)
    reason, by = [expect(data[name], str, name) for name in ("reason", "by")]
    if result.status != "rejected":
        raise ValueError(f"the result of a rejected call has the status {result.status!r}")
    source = _load_source(data)
    refusal = RejectedToolCall(entry.metadata, entry, reason, source)
    return Decision(refusal, result, source, by)


def _load_source(data: Mapping[str, Any]) -> Literal["hook", "policy", "person"]:
    source = data["source"]
    if source not in ("hook", "policy", "person"):
        raise ValueError(f"the source of a decision is {source!r}")
    return cast("Literal['hook', 'policy', 'person']", source)


_STATES: Mapping[str, Callable[[BaseToolCall, Mapping[str, Any]], CallState]] = {
    "pending": _load_pending,
    "held": _load_held,
    "handled": _load_handled,
    "rejected": _load_rejected,
}
