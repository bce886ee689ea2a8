"""The rules about a history of Converse, one row each.

What mends a breach of one is in `doctor/bedrock/stages.py`, under the same id.
"""

from __future__ import annotations

from collections.abc import Mapping

from lutumpy.errors import Certainty, Problem
from lutumpy.rules.catalogue import Rule, rules_by_id

__all__ = ["RULES", "is_vendor_only"]

# Wherever the API is spoken, a message says who speaks and a result names its call.
_REQUEST_RULES_OF_ALL = frozenset({"converse.body"})


def _rule(name: str, requires: str, *certainties: Certainty, vendor_only: bool = True) -> Rule:
    return Rule(f"converse.{name}", requires, certainties or ("refused",), vendor_only)


RULES: Mapping[str, Rule] = rules_by_id(
    _rule("nesting", "A message is nested at most 300 levels deep", "some"),
    _rule(
        "encoding",
        "Text is whole characters and every value is one that JSON knows",
        "refused",
        "some",
        vendor_only=False,
    ),
    _rule(
        "messages",
        "The messages are a list of objects with role and content, and at least one",
        vendor_only=False,
    ),
    _rule("role", "A role is user, assistant or system", vendor_only=False),
    _rule("system_role", "Only some models take system messages", "some"),
    _rule("content", "Content is a list of blocks", vendor_only=False),
    _rule("empty_content", "A message has at least one block"),
    _rule("block", "A block has exactly one key, which says what it is"),
    _rule("block_keys", "What stands in a block has only keys that the API knows"),
    _rule("text", "A text is a text"),
    _rule("blank_text", "A text says something", "refused", "some"),
    _rule("blank_result", "A text in a result says something", "refused", "some"),
    _rule(
        "tool_use_id",
        "The ids of calls have at most 64 letters, digits, `_`, `-`, `.` and `:`",
        vendor_only=False,
    ),
    _rule("tool_use_name", "The name in a call has 1 to 64 letters, digits, `_` and `-`"),
    _rule("tool_use_input", "The input of a call is an object", vendor_only=False),
    _rule(
        "tool_use_type",
        "A call has no type, unless the provider runs it: answers have one that requests may not",
    ),
    _rule("result_content", "The content of a result is a list of parts", vendor_only=False),
    _rule("result_json", "JSON in a result is an object"),
    _rule("result_status", "The status of a result is `success` or `error`"),
    _rule("empty_error", "A result that is an error says something"),
    _rule("image_type", "An image is PNG, JPEG, GIF or WebP, and its format says which"),
    _rule("document_type", "A document's format is one that the API knows"),
    _rule(
        "document_name",
        "A document has a name of at most 200 letters, digits, single spaces, hyphens, "
        "parentheses and brackets",
        "refused",
        "some",
    ),
    _rule("document_text", "A message with a document has a text, too"),
    _rule("media_source", "What a message shows stands in it as bytes, or in S3"),
    _rule("video_for_model", "Only some models are shown films", "refused", "some"),
    _rule("s3_for_model", "Claude is shown nothing from S3", "refused", "some"),
    _rule("result_media", "Nova takes no documents and films in results", "refused", "some"),
    _rule(
        "cache_point",
        "At most four cache points, of the kind that the API knows",
        "refused",
        "some",
    ),
    _rule("reasoning_block", "Reasoning has its text, or what stands for it encrypted"),
    _rule("system", "The system text is a list of blocks with a text"),
    _rule("first_user", "The first message is the user's", "refused", "some"),
    _rule(
        "alternation", "The messages are the user's and the assistant's in turns", "refused", "some"
    ),
    _rule("last_user", "Newer models require a user message at the end", "some"),
    _rule(
        "block_role",
        "Calls and reasoning are in assistant messages; "
        "results, images and documents in user messages",
        "refused",
        "some",
    ),
    _rule("unique_ids", "The calls of one message have different ids", vendor_only=False),
    _rule("reused_id", "No later message uses the id of a call again", "discouraged"),
    _rule(
        "results_after_calls",
        "Each call is answered in the next message",
        vendor_only=False,
    ),
    _rule("results_first", "Results come first in that message", "refused", "some"),
    _rule("result_order", "Results keep the order of their calls", "discouraged"),
    _rule("call_for_result", "A result answers a call of the message before", vendor_only=False),
    _rule("single_result", "A call has one result", vendor_only=False),
    _rule("calls_last", "Nothing follows the calls of a message", "some"),
    _rule(
        "results_alone",
        "Llama and Mistral take nothing beside results",
        "refused",
        "discouraged",
    ),
    _rule(
        "signature",
        "Reasoning that goes to Claude is signed, and no signature is empty",
        "refused",
        "some",
    ),
    _rule("reasoning_for_model", "DeepSeek takes no reasoning back beside tools", "some"),
    _rule(
        "reasoning_first",
        "With a thinking budget, the turn that results continue starts with its reasoning",
        "refused",
        "some",
    ),
    _rule(
        "tool_config",
        "A request whose history has calls declares tools",
        vendor_only=False,
    ),
    _rule("tool_declared", "Tools that were called are still declared", "discouraged"),
)
"""In the order in which an API's shapes, ids and sequence are checked."""


def is_vendor_only(problem: Problem) -> bool:
    """Whether other hosts than Bedrock may accept what a problem is about."""
    if problem.message.startswith("Unknown parameter"):
        return True
    if problem.rule in _REQUEST_RULES_OF_ALL:
        return False
    rule = RULES.get(problem.rule)
    return rule is None or rule.vendor_only
