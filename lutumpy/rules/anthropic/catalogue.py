"""The rules about a history of Messages, one row each.

What mends a breach of one is in `doctor/anthropic/stages.py`, under the same id.
"""

from __future__ import annotations

from collections.abc import Mapping

from lutumpy.errors import Problem
from lutumpy.rules.catalogue import Rule, rules_by_id

__all__ = ["RULES", "is_vendor_only"]

# Wherever the API is spoken, a message says who speaks and a result names its call: such rules hold
# everywhere. Of the rules about parameters and tools only these do; all others are known
# of Anthropic alone.
_REQUEST_RULES_OF_ALL = frozenset({"anthropic.body"})

RULES: Mapping[str, Rule] = rules_by_id(
    Rule(
        "anthropic.nesting",
        "A message is nested at most 300 levels deep",
        ("some",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.encoding",
        "Text is whole characters and every value is one that JSON knows",
        ("refused",),
    ),
    Rule(
        "anthropic.messages",
        "The messages are a list of objects with role and content, and at least one",
        ("refused",),
    ),
    Rule("anthropic.role", "A role is user, assistant or system", ("refused",)),
    Rule(
        "anthropic.system_for_model",
        "Models before the 4.6 generation take no system messages",
        ("refused",),
        vendor_only=True,
    ),
    Rule("anthropic.content", "Content is a text or a list of blocks", ("refused",)),
    Rule(
        "anthropic.block",
        "Blocks are objects of a known type, with what that type can't do without",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.block_keys",
        "Text, calls, results and reasoning have only keys that the API knows",
        ("refused",),
        vendor_only=True,
    ),
    Rule("anthropic.text", "A text block holds a text", ("refused",), vendor_only=True),
    Rule(
        "anthropic.blank_text",
        "A message is more than white space",
        ("refused",),
        vendor_only=True,
    ),
    Rule("anthropic.empty_text", "A text block is not empty", ("refused",), vendor_only=True),
    Rule(
        "anthropic.tool_use_id",
        "The ids of calls consist of letters, digits, `_` and `-`",
        ("refused",),
    ),
    Rule(
        "anthropic.tool_use_name",
        "The name in a call has 1 to 200 characters",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.media_source",
        "What an image or a document shows is in its source: as base64, as a text, at an address, "
        "or as a file",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.image_type",
        "An image is JPEG, PNG, GIF or WebP, and its media type is that of its bytes",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.image_size",
        "An image has at most 10 MB in base64",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.image_pixels",
        "An image has at most 8,000 pixels a side, and 2,000 in a request with more than 20 images",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.document_type",
        "A document is a PDF or plain text, and its media type says which",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.document_size",
        "A document leaves room in a request of at most 32 MB",
        ("refused",),
        vendor_only=True,
    ),
    Rule("anthropic.tool_use_input", "The input of a call is an object", ("refused",)),
    Rule(
        "anthropic.server_id",
        "The ids of calls to the provider's own tools begin with `srvtoolu_`",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.thinking_block",
        "A thinking block has its text and signature, a redacted one its data",
        ("refused",),
        vendor_only=True,
    ),
    Rule("anthropic.is_error", "`is_error` is true or false", ("refused",), vendor_only=True),
    Rule(
        "anthropic.result_content",
        "The content of a result is a text or a list of blocks",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "anthropic.empty_error",
        "A result that is an error has some text",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.error_content",
        "A result that is an error holds only text",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.system",
        "`system` is a text or a list of text blocks",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.cache_control",
        "At most four blocks are marked for the cache, with marks that the API knows, "
        "and none for longer than an earlier one",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "anthropic.system_first",
        "A system message is not the first message",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.system_position",
        "A system message comes before an assistant message or at the end",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.clear_at",
        "A system message for one turn holds texts alone, without a mark for the cache",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.message_effort",
        "A system message sets an effort that the API knows, and nothing else of the output",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.tool_change",
        "A change of tools names a tool, or defines one that it adds",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.tool_change_position",
        "A change of tools follows a user message, or the result of the provider's own tool",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.tool_change_paused",
        "No change of tools directly follows a paused turn",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.tool_reference_unresolved",
        "A change of tools names one that is declared, or defined in an earlier message",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.tool_name_conflict",
        "A tool is redefined as one of the same kind",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.withdrawn_tool",
        "No tool is called that was withdrawn before",
        ("some",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.block_role",
        "Calls and reasoning are in assistant messages; "
        "results, images and documents in user messages",
        ("refused",),
        vendor_only=True,
    ),
    Rule("anthropic.empty_user", "A user message is not empty", ("refused",), vendor_only=True),
    Rule("anthropic.unique_ids", "The calls of one message have different ids", ("refused",)),
    Rule(
        "anthropic.reused_id",
        "No later message uses the id of a call again",
        ("discouraged",),
        vendor_only=True,
    ),
    Rule("anthropic.results_after_uses", "Each call is answered in the next message", ("refused",)),
    Rule("anthropic.results_first", "Results come first in that message", ("refused",)),
    Rule("anthropic.use_for_result", "A result answers a call of the message before", ("refused",)),
    Rule("anthropic.single_result", "A call has one result", ("refused",)),
    Rule(
        "anthropic.result_order",
        "Results keep the order of their calls",
        ("discouraged",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.uses_last", "Nothing follows the calls of a message", ("some",), vendor_only=True
    ),
    Rule(
        "anthropic.toolset_name",
        "A result names the toolset that its call named",
        ("some",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.use_for_server_result",
        "A result of the provider's own tool follows its call",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.mixed_turn_results_only",
        "While the provider's own tool runs, the user sends only results",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.server_result_missing",
        "The next reply brings the result of the provider's own tool",
        ("some",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.server_tool_declared",
        "The provider's own tool that still runs is declared",
        ("some",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.thinking_first",
        "With a thinking budget, the turn that results continue starts with its thinking",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "anthropic.thinking_last",
        "Reasoning is not the last block of a message",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.thinking_disabled",
        "Without thinking, the last message holds no reasoning",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.thinking_modified",
        "Signed reasoning goes back unchanged (only a server can know)",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.prefill",
        "Newer models require a user message at the end",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.prefill_whitespace",
        "A message to be continued doesn't end in white space",
        ("some",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.host_field",
        "What one host alone has run or found goes to that host",
        ("some",),
    ),
    Rule(
        "anthropic.sealed",
        "What a host or a model has sealed goes to who can open it",
        ("refused", "some"),
    ),
    Rule(
        "anthropic.tool_declared",
        "Tools that were called are still declared; some hosts require that any tool is",
        ("discouraged", "some"),
        vendor_only=True,
    ),
    Rule(
        "anthropic.tool_reference",
        "A tool that a result refers to is declared",
        ("some",),
        vendor_only=True,
    ),
    Rule(
        "anthropic.reasoning_bound",
        "Signed reasoning stands behind what it was signed over (with `before=`)",
        ("refused", "some", "discouraged"),
    ),
    Rule(
        "anthropic.cached_prefix",
        "A request begins with the one before it (with `before=`)",
        ("discouraged",),
    ),
)
"""In the order in which an API's shapes, ids and sequence are checked."""


def is_vendor_only(problem: Problem) -> bool:
    """Whether other hosts than Anthropic may accept what a problem is about."""
    # Hosts differ in the keys that they know, even of what they all check.
    if problem.message.endswith("Extra inputs are not permitted"):
        return True
    if problem.rule in _REQUEST_RULES_OF_ALL:
        return False
    rule = RULES.get(problem.rule)
    return rule is None or rule.vendor_only
