"""One call of a model: parsed and validated once, to a call or to an issue. Nothing here raises."""

from __future__ import annotations

from typing import Any

from lutumpy.core.items import CallBlock, ToolMetadata
from lutumpy.core.origin import Origin
from lutumpy.core.tool_specs import SEARCH_CALL
from lutumpy.core.transcript import Transcript
from lutumpy.hooks.pipeline import CallOrIssue
from lutumpy.plain.preview import MARK
from lutumpy.rounds.offered import OfferedTools
from lutumpy.tools.arguments import Refused, decode_arguments, repair_or_explain
from lutumpy.tools.calls import IssueReason, ToolCall, ToolCallIssue
from lutumpy.tools.selectors import near_names

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
    origin: Origin | None = None,
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
    metadata = ToolMetadata(block.id, name, arguments)
    is_ours = block.kind == "function" or (block.kind == SEARCH_CALL and name == offer.finder)
    selector = offer.by_name.get(name) if is_ours else None
    # An answer can be cut off before the name of a call; then the name isn't what is wrong.
    if selector is None and (name or block.problem is None):
        detail = _explain_unknown(offer, block)
        return _make_issue(transcript, metadata, "unknown_tool", detail)
    if selector is not None and name not in offer.offered:
        detail = _explain_unavailable(offer, name)
        return _make_issue(transcript, metadata, "not_available", detail)
    if block.problem is not None or selector is None:
        reason: IssueReason = "truncated" if cut else "malformed_arguments"
        return _make_issue(transcript, metadata, reason, block.problem or "")
    if cut and (block.as_object or not arguments.strip()):
        return _make_issue(transcript, metadata, "truncated", _explain_truncated(name))
    # pydantic's parser accepts NaN and Infinity, and JSON has neither (rule C2b).
    if "NaN" in arguments or "Infinity" in arguments:
        decoded = decode_arguments(selector.tool, arguments)
    else:
        # Nothing else stands between a good call and pydantic; a bad one is looked at again.
        try:
            return ToolCall(metadata, selector.tool.decode(arguments), selector, (), origin)
        except Exception as error:
            decoded = repair_or_explain(selector.tool, arguments, error)
    if isinstance(decoded, Refused):
        if cut and decoded.reason == "malformed_arguments":
            return _make_issue(transcript, metadata, "truncated", _explain_truncated(name))
        return _make_issue(transcript, metadata, decoded.reason, decoded.detail)
    return ToolCall(metadata, decoded.input, selector, decoded.repairs, origin)


def _make_issue(
    transcript: Transcript, metadata: ToolMetadata, reason: IssueReason, detail: str
) -> ToolCallIssue:
    failures = transcript.failures(metadata.name, metadata.arguments)
    return ToolCallIssue(metadata, reason, detail, failures)


# The texts below go to the model: they are public behaviour.


def _explain_unknown(offer: OfferedTools[Any], block: CallBlock) -> str:
    if block.kind != "function":
        return f"Calls of the kind {block.kind!r} can't be run here. {_list_offered(offer)}"
    near = near_names(block.name, [s.name for s in offer.selectors])
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"There is no tool named {_quote_name(block.name)}.{hint} {_list_offered(offer)}"


def _explain_unavailable(offer: OfferedTools[Any], name: str) -> str:
    return f"The tool {name} is not available in this turn. {_list_offered(offer)}"


def _explain_truncated(name: str) -> str:
    return (
        f"The arguments of {name} were cut off before they were complete, so it was not run. "
        "Call it again with complete, shorter arguments."
    )


def _list_offered(offer: OfferedTools[Any]) -> str:
    names = [s.name for s in offer.selectors]
    if not names:
        return "No tools are available."
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"Available tools: {', '.join(names[:_NAMES_SHOWN])}{more}."


def _quote_name(name: str) -> str:
    if len(name) > _NAME_SHOWN:
        name = name[:_NAME_SHOWN] + MARK  # the mark comes on top of the characters shown
    return repr(name)
