"""The rules about a history of Converse, one row each.

What mends a breach of one is in `doctor/bedrock/stages.py`, under the same id.
"""

from __future__ import annotations

from collections.abc import Mapping

from lutumpy.errors import Problem
from lutumpy.rules.catalogue import Rule, rules_by_id

__all__ = ["RULES", "is_vendor_only"]

# Wherever the API is spoken, a message says who speaks and a result names its call.
_REQUEST_RULES_OF_ALL = frozenset({"converse.body"})


RULES: Mapping[str, Rule] = rules_by_id(
    Rule(
        "converse.nesting",
        "A message is nested at most 300 levels deep",
        ("some",),
        vendor_only=True,
    ),
    Rule(
        "converse.encoding",
        "Text is whole characters and every value is one that JSON knows",
        ("refused", "some"),
    ),
    Rule(
        "converse.messages",
        "The messages are a list of objects with role and content, and at least one",
        ("refused",),
    ),
    Rule("converse.role", "A role is user, assistant or system", ("refused",)),
    Rule(
        "converse.system_role", "Only some models take system messages", ("some",), vendor_only=True
    ),
    Rule("converse.content", "Content is a list of blocks", ("refused",)),
    Rule(
        "converse.empty_content", "A message has at least one block", ("refused",), vendor_only=True
    ),
    Rule(
        "converse.block",
        "A block has exactly one key, which says what it is",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "converse.block_keys",
        "What stands in a block has only keys that the API knows",
        ("refused",),
        vendor_only=True,
    ),
    Rule("converse.text", "A text is a text", ("refused",), vendor_only=True),
    Rule("converse.blank_text", "A text says something", ("refused", "some"), vendor_only=True),
    Rule(
        "converse.blank_result",
        "A text in a result says something",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "converse.tool_use_id",
        "The ids of calls have at most 64 letters, digits, `_`, `-`, `.` and `:`",
        ("refused",),
    ),
    Rule(
        "converse.tool_use_name",
        "The name in a call has 1 to 64 letters, digits, `_` and `-`",
        ("refused",),
        vendor_only=True,
    ),
    Rule("converse.tool_use_input", "The input of a call is an object", ("refused",)),
    Rule(
        "converse.tool_use_type",
        "A call has no type, unless the provider runs it: answers have one that requests may not",
        ("refused",),
        vendor_only=True,
    ),
    Rule("converse.result_content", "The content of a result is a list of parts", ("refused",)),
    Rule("converse.result_json", "JSON in a result is an object", ("refused",), vendor_only=True),
    Rule(
        "converse.result_status",
        "The status of a result is `success` or `error`",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "converse.empty_error",
        "A result that is an error says something",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "converse.image_type",
        "An image is PNG, JPEG, GIF or WebP, and its format says which",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "converse.image_size",
        "An image for Claude has at most 5 MB in base64, and 8,000 pixels a side; 2,000 in a "
        "request with more than 20 images",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "converse.document_type",
        "A document's format is one that the API knows",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "converse.document_name",
        "A document has a name of at most 200 letters, digits, single spaces, hyphens, "
        "parentheses and brackets",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "converse.document_text",
        "A message with a document has a text, too",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "converse.media_source",
        "What a message shows stands in it as bytes, or in S3",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "converse.video_for_model",
        "Only some models are shown films",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "converse.s3_for_model",
        "Claude is shown nothing from S3",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "converse.result_media",
        "Nova takes no documents and films in results",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "converse.cache_point",
        "At most four cache points, of the kind that the API knows, and where the model takes them",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "converse.reasoning_block",
        "Reasoning has its text, or what stands for it encrypted",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "converse.system",
        "The system text is a list of blocks with a text",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "converse.first_user",
        "The first message is the user's",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "converse.alternation",
        "The messages are the user's and the assistant's in turns",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "converse.last_user",
        "Newer models require a user message at the end",
        ("some",),
        vendor_only=True,
    ),
    Rule(
        "converse.block_role",
        "Calls and reasoning are in assistant messages; "
        "results, images and documents in user messages",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule("converse.unique_ids", "The calls of one message have different ids", ("refused",)),
    Rule(
        "converse.reused_id",
        "No later message uses the id of a call again",
        ("discouraged",),
        vendor_only=True,
    ),
    Rule("converse.results_after_calls", "Each call is answered in the next message", ("refused",)),
    Rule(
        "converse.results_first",
        "Results come first in that message",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "converse.result_order",
        "Results keep the order of their calls",
        ("discouraged",),
        vendor_only=True,
    ),
    Rule("converse.call_for_result", "A result answers a call of the message before", ("refused",)),
    Rule("converse.single_result", "A call has one result", ("refused",)),
    Rule(
        "converse.calls_last", "Nothing follows the calls of a message", ("some",), vendor_only=True
    ),
    Rule(
        "converse.results_alone",
        "Llama and Mistral take nothing beside results",
        ("refused", "discouraged"),
        vendor_only=True,
    ),
    Rule(
        "converse.signature",
        "Reasoning that goes to Claude is signed, and no signature is empty",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "converse.reasoning_for_model",
        "DeepSeek takes no reasoning back beside tools",
        ("some",),
        vendor_only=True,
    ),
    Rule(
        "converse.reasoning_first",
        "With a thinking budget, the turn that results continue starts with its reasoning",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "converse.sealed",
        "What a host or a model has sealed goes to who can open it",
        ("refused", "some"),
    ),
    Rule("converse.tool_config", "A request whose history has calls declares tools", ("refused",)),
    Rule(
        "converse.tool_declared",
        "Tools that were called are still declared",
        ("discouraged",),
        vendor_only=True,
    ),
    Rule("converse.tool_reference", "A change of tools names one that is declared", ("some",)),
    Rule(
        "converse.tool_change_position",
        "A change of tools follows a message of the user's",
        ("some",),
    ),
    Rule("converse.withdrawn_tool", "No tool is called that was withdrawn before", ("some",)),
    Rule(
        "converse.reasoning_bound",
        "Signed reasoning stands behind what it was signed over (with `before=`)",
        ("refused", "some", "discouraged"),
    ),
    Rule(
        "converse.cached_prefix",
        "A request begins with the one before it (with `before=`)",
        ("discouraged",),
    ),
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
