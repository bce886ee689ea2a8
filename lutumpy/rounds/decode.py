"""One call of a model: parsed and validated once, to a call or to an issue. Nothing here raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lutumpy.core.call_place import CallPlace
from lutumpy.core.items import CallBlock, TextMetadata, ToolMetadata
from lutumpy.core.tool_specs import SEARCH_CALL
from lutumpy.core.transcript import Transcript
from lutumpy.plain.preview import MARK
from lutumpy.rounds.offered import NO_TOOLS, OfferedTools
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.argument_edits import ArgumentRepair
from lutumpy.tools.argument_report import limit_detail
from lutumpy.tools.arguments import Refused, decode_arguments, decode_text, repair_or_explain
from lutumpy.tools.calls import IssueReason, ToolCall, ToolCallIssue
from lutumpy.tools.selectors import Selector, near_names

if TYPE_CHECKING:
    from lutumpy.hooks.pipeline import CallOrIssue

__all__ = ["decode_call"]

# The most names of tools, and characters of an unknown name, that the model is shown.
_NAMES_SHOWN = 20
_NAME_SHOWN = 100


def decode_call(
    offer: OfferedTools[Any],
    block: CallBlock,
    transcript: Transcript,
    *,
    cut: bool,
    origin: CallPlace | None = None,
) -> CallOrIssue:
    """Decode one call; the checks are in the order of rule C2.

    Args:
        offer: What was offered.
        block: The call as the adapter read it.
        transcript: The conversation: it knows which calls have failed before.
        cut: Whether the answer was cut off in this call.
        origin: The call's place in the conversation.
    """
    name, arguments = block.name, block.arguments
    if block.kind == "function" or (block.kind == SEARCH_CALL and name == offer.finder):
        metadata, selector = ToolMetadata(block.id, name, arguments), offer.by_name.get(name)
    else:
        metadata, selector = _find_tool_of_kind(offer, block)
    # An answer can be cut off before the name of a call; then the name isn't what is wrong.
    if selector is None and (name or block.problem is None):
        if block.server_label is not None:
            return _decode_approval(offer, block, transcript, cut=cut, origin=origin)
        detail = _explain_unknown(offer, block)
        return _make_issue(transcript, metadata, "unknown_tool", detail)
    if selector is not None and name not in offer.offered:
        detail = _explain_unavailable(offer, name)
        return _make_issue(transcript, metadata, "not_available", detail)
    if block.problem is not None or selector is None:
        reason: IssueReason = "truncated" if cut else "malformed_arguments"
        return _make_issue(transcript, metadata, reason, block.problem or "")
    is_text = type(metadata) is TextMetadata
    # Half of a text looks like a whole one, so what is cut is never run (rule C2a).
    if cut and (block.as_object or is_text or not arguments.strip()):
        return _make_issue(transcript, metadata, "truncated", _explain_truncated(name))
    if is_text:
        decoded = decode_text(selector.tool, arguments)
    # pydantic's parser accepts NaN and Infinity, and JSON has neither (rule C2b). Looking for a
    # letter first takes a third of the time.
    elif ("N" in arguments and "NaN" in arguments) or (
        "I" in arguments and "Infinity" in arguments
    ):
        decoded = decode_arguments(selector.tool, arguments)
    else:
        # Nothing else is between a good call and pydantic; a bad one is looked at again.
        try:
            read = selector.tool.decode(arguments)
            receipt = _receipt(block) if block.by_schema else ()
            return ToolCall(metadata, read, selector, receipt, origin)
        except Exception as error:
            decoded = repair_or_explain(selector.tool, arguments, error)
    if isinstance(decoded, Refused):
        if cut and decoded.reason == "malformed_arguments":
            return _make_issue(transcript, metadata, "truncated", _explain_truncated(name))
        return _make_issue(transcript, metadata, decoded.reason, decoded.detail)
    repairs = (*_receipt(block), *decoded.repairs)
    return ToolCall(metadata, decoded.input, selector, repairs, origin)


def _receipt(block: CallBlock) -> tuple[ArgumentRepair, ...]:
    """What the schema made of arguments that the model wrote without a type (rule C5)."""
    return tuple([ArgumentRepair(path, "by_schema") for path in block.by_schema])


def _find_tool_of_kind(
    offer: OfferedTools[Any], block: CallBlock
) -> tuple[ToolMetadata, Selector[Any, Any, Any] | None]:
    """The tool that a call of another kind than a function's is for, if there is one: a text tool,
    or one that takes the place of a tool that the provider has typed.
    """
    if block.kind != "custom":
        metadata = ToolMetadata(block.id, block.name, block.arguments)
        is_typed = offer.takes_kind(block.name, block.kind)
        return metadata, offer.by_name.get(block.name) if is_typed else None
    selector = offer.by_name.get(block.name)
    if selector is not None and not selector.tool.is_text:
        selector = None
    return TextMetadata(block.id, block.name, block.arguments), selector


def _decode_approval(
    offer: OfferedTools[Any],
    block: CallBlock,
    transcript: Transcript,
    *,
    cut: bool,
    origin: CallPlace | None,
) -> CallOrIssue:
    """Decode a call that the provider makes itself, if it is approved.

    It is an issue, and so rejected, where nobody can approve it: in a turn without tools, which has
    no round; without an id to name in the answer; or with arguments that nobody can judge.
    """
    metadata = ToolMetadata(block.id, block.name, block.arguments)
    if offer is NO_TOOLS or not block.answerable:
        return _make_issue(transcript, metadata, "unknown_tool", _explain_unapproved(block))
    if not (cut and not block.arguments.strip()):
        try:
            return ApprovalRequest(metadata, block.server_label or "", origin)
        except ValueError:
            pass  # not a JSON object, or text that pydantic doesn't take
    if cut:
        return _make_issue(transcript, metadata, "truncated", _explain_truncated(block.name))
    detail = (
        f"The arguments of {_shorten_name(block.name)} are not a JSON object, so it was not called."
    )
    return _make_issue(transcript, metadata, "malformed_arguments", detail)


def _make_issue(
    transcript: Transcript, metadata: ToolMetadata, reason: IssueReason, detail: str
) -> ToolCallIssue:
    failures = transcript.failures(metadata.name, metadata.arguments)
    return ToolCallIssue(metadata, reason, limit_detail(detail), failures)


# The texts below go to the model: they are public behaviour.


def _explain_unknown(offer: OfferedTools[Any], block: CallBlock) -> str:
    # A model that may call text tools this way has the wrong name; any other the wrong way.
    is_misnamed = block.kind == "custom" and block.name not in offer.by_name
    if block.kind != "function" and not (is_misnamed and _offers_text_tools(offer)):
        return (
            f"Calls of the kind {_quote_name(block.kind)} can't be run here. {_list_offered(offer)}"
        )
    near = near_names(block.name, [s.name for s in offer.selectors])
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"There is no tool named {_quote_name(block.name)}.{hint} {_list_offered(offer)}"


def _explain_unapproved(block: CallBlock) -> str:
    return f"Nobody can approve calls in this turn, so {_quote_name(block.name)} was not called."


def _offers_text_tools(offer: OfferedTools[Any]) -> bool:
    return any(selector.tool.is_text for selector in offer.selectors)


def _explain_unavailable(offer: OfferedTools[Any], name: str) -> str:
    return f"The tool {name} is not available in this turn. {_list_offered(offer)}"


def _explain_truncated(name: str) -> str:
    return (
        f"The arguments of {_shorten_name(name)} were cut off before they were complete, so it "
        "was not run. Call it again with complete, shorter arguments."
    )


def _list_offered(offer: OfferedTools[Any]) -> str:
    names = [s.name for s in offer.selectors]
    if not names:
        return "No tools are available."
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"Available tools: {', '.join(names[:_NAMES_SHOWN])}{more}."


def _quote_name(name: str) -> str:
    return repr(_shorten_name(name))


def _shorten_name(name: str) -> str:
    if len(name) > _NAME_SHOWN:
        return name[:_NAME_SHOWN] + MARK  # the mark comes on top of the characters shown
    return name
