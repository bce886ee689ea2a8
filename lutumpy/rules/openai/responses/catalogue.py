"""The rules about a history of Responses, one row each.

What mends a breach of one is in `doctor/openai/responses/stages.py`, under the same id.
"""

from __future__ import annotations

from collections.abc import Mapping

from lutumpy.errors import Problem
from lutumpy.rules.catalogue import Rule, rules_by_id
from lutumpy.rules.openai.vendor_limits import is_limit_of_openai

__all__ = ["RULES", "is_vendor_only"]

# Rules about the request around the messages: other hosts have shapes, names, schemas and models
# of their own.
_REQUEST_RULES_OF_VENDOR = frozenset(
    f"responses.{name}"
    for name in (
        "held_prefix parallel_tool_calls parameter_for_model ranges tool_choice "
        "tool_choice_needs_tools tool_choice_unknown tool_name tools tools_count "
        "unknown_parameter"
    ).split()
)

RULES: Mapping[str, Rule] = rules_by_id(
    Rule("responses.nesting", "A message is nested at most 300 levels deep", ("some",)),
    Rule(
        "responses.encoding",
        "Text is whole characters and every value is one that JSON knows",
        ("refused", "some"),
    ),
    Rule(
        "responses.input",
        "The input is a text or a list of objects that say what they are",
        ("refused",),
    ),
    Rule(
        "responses.item_type",
        "Items are of a type that the API takes",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "responses.item_keys",
        "Messages, calls, outputs and reasoning have only keys that the API knows",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "responses.item_id",
        "An item's id has the prefix of its type and up to 64 characters",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "responses.duplicate_item", "No item appears twice", ("refused", "some"), vendor_only=True
    ),
    Rule(
        "responses.role", "A message's role is assistant, system, developer or user", ("refused",)
    ),
    Rule("responses.content", "Every message has content", ("refused",)),
    Rule(
        "responses.parts",
        "Content parts have a type that the role takes",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "responses.media_source",
        "What an image or a file shows is at an address, in a data URL, or a file with an id",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "responses.image_type",
        "An image is JPEG, PNG, GIF or WebP, by its name or its bytes",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "responses.part_length",
        "A text has at most 10,485,760 characters, "
        "an image 20,971,520 and a file 73,400,320 of its URL",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "responses.file_data",
        "A file is a document, a sheet, or text, and not audio, video or an image",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "responses.file_url",
        "A file given by its address is not audio or video either",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "responses.additional_tools",
        "Tools that an item brings are the developer's",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "responses.configuration_update",
        "An update sets the effort or the format of the output, on a model that takes one",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "responses.status",
        "An item's status is in_progress, completed or incomplete; reasoning has none",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "responses.reasoning_summary",
        "Reasoning has a list of summaries, which are texts; it may be empty",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule("responses.call_id", "A `call_id` is a text of 1 to 64 characters", ("refused",)),
    Rule(
        "responses.call_name",
        "The name in a call has 1 to 128 letters, digits, `_` and `-`",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule("responses.arguments", "The arguments of a call are a text", ("refused",)),
    Rule("responses.arguments_json", "The arguments are JSON", ("discouraged",)),
    Rule(
        "responses.arguments_length",
        "The arguments have at most 1,048,576 characters",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "responses.truncated_call",
        "A call that was cut off is dropped and not answered",
        ("discouraged",),
    ),
    Rule(
        "responses.output",
        "An output is a text of up to 10,485,760 characters, or a list of parts",
        ("refused",),
    ),
    Rule("responses.output_for_call", "Each call has an output after it", ("refused", "some")),
    Rule(
        "responses.call_for_output",
        "An output comes after its call, which the server may hold",
        ("refused", "some"),
    ),
    Rule("responses.duplicate_output", "A call has one output", ("some",)),
    Rule("responses.duplicate_call_id", "Calls have different ids", ("some",)),
    Rule("responses.interleaved_calls", "Parallel calls are next to each other", ("some",)),
    Rule(
        "responses.approval_for_request",
        "Each request for approval has a response, which approves or refuses it",
        ("refused",),
    ),
    Rule(
        "responses.request_for_approval",
        "A response to a request for approval comes with its request, which the server may hold",
        ("refused",),
    ),
    Rule(
        "responses.dangling_reasoning",
        "Reasoning comes with the item that it led to; a message then keeps its id",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "responses.required_reasoning",
        "An item sent by its id comes with its reasoning (only a server can know)",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "responses.host_field",
        "Ids, fields and items that one host alone knows go to that host",
        ("some",),
    ),
    Rule(
        "responses.sealed",
        "What a host or a model has sealed goes to who can open it",
        ("refused", "some"),
    ),
    Rule("responses.tool_declared", "Tools that were called are still declared", ("discouraged",)),
    Rule(
        "responses.reasoning_bound",
        "Signed reasoning stands behind what it was signed over (with `before=`)",
        ("discouraged",),
    ),
    Rule(
        "responses.cached_prefix",
        "A request begins with the one before it (with `before=`)",
        ("discouraged",),
    ),
)
"""In the order in which an API's shapes, ids and sequence are checked."""


def is_vendor_only(problem: Problem) -> bool:
    """Whether other hosts than OpenAI may accept what a problem is about."""
    rule = RULES.get(problem.rule)
    if rule is not None and rule.vendor_only:
        return True
    return problem.rule in _REQUEST_RULES_OF_VENDOR or is_limit_of_openai(problem)
