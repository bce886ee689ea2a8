"""The rules about a history of Chat Completions, one row each.

What mends a breach of one is in `doctor/openai/chat/stages.py`, under the same id.
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
    f"chat.{name}"
    for name in (
        "parallel_tool_calls parallel_tool_calls_needs_tools parameter_for_model ranges "
        "tool_choice tool_choice_needs_tools tool_choice_unknown tool_name tools "
        "tools_count tools_for_model unknown_parameter web_search_for_model"
    ).split()
)

RULES: Mapping[str, Rule] = rules_by_id(
    Rule("chat.nesting", "A message is nested at most 300 levels deep", ("some",)),
    Rule(
        "chat.encoding",
        "Text is whole characters and every value is one that JSON knows",
        ("refused", "some"),
    ),
    Rule("chat.messages", "The messages are a list of objects, and at least one", ("refused",)),
    Rule("chat.role", "Each message has one of the six roles", ("refused",)),
    Rule(
        "chat.role_for_model",
        "The first reasoning models take neither system nor developer messages",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "chat.name",
        "The name of who speaks has no white space, and none of `<`, `|`, `\\`, `/` and `>`; "
        "the result of an old function has its name",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "chat.content",
        "Every message has content; an assistant message with calls or a refusal may lack it; "
        "nothing is said under another API's key",
        ("refused", "some", "discouraged"),
        vendor_only=True,
    ),
    Rule(
        "chat.parts",
        "Content parts have a type that the role takes; "
        "only user messages hold images, audio and files",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "chat.audio_for_model",
        "Audio goes only to models that take audio",
        ("refused",),
        vendor_only=True,
    ),
    Rule("chat.audio_format", "Audio is WAV or MP3", ("refused", "some"), vendor_only=True),
    Rule(
        "chat.media_source",
        "What an image or a file shows is at an address, in a data URL, or a file with an id",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "chat.image_type",
        "An image is JPEG, PNG, GIF or WebP, by its name or its bytes",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "chat.file_data",
        "A file is a PDF; other files with text are sent as text",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "chat.part_length",
        "A text has at most 10,485,760 characters; images and files have the limits of Responses",
        ("some",),
    ),
    Rule(
        "chat.tool_calls",
        "`tool_calls` is a list of 1 to 128 calls, each a function or custom",
        ("refused",),
    ),
    Rule(
        "chat.call_id",
        "The id of a call is a text of 1 to 40 characters",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "chat.call_name",
        "The name in a call has 1 to 64 letters, digits, `_` and `-`",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule("chat.arguments", "The arguments of a call are a text", ("refused",)),
    Rule("chat.arguments_json", "The arguments are a JSON object", ("discouraged",)),
    Rule("chat.arguments_length", "The arguments have at most 1,048,576 characters", ("some",)),
    Rule("chat.tool_call_id", "A result names the call that it answers", ("refused",)),
    Rule(
        "chat.results_after_calls",
        "Each call is answered in the messages right after it, before any other message",
        ("refused",),
    ),
    Rule("chat.result_without_calls", "A result follows a message with calls", ("refused",)),
    Rule(
        "chat.unknown_call_id",
        "A result answers a call of the message that it follows",
        ("refused",),
    ),
    Rule("chat.duplicate_result", "A call has one result", ("refused",)),
    Rule("chat.duplicate_call_id", "The calls of one message have different ids", ("some",)),
    Rule("chat.reused_call_id", "No later message uses the id of a call again", ("discouraged",)),
    Rule("chat.result_order", "Results keep the order of their calls", ("discouraged",)),
    Rule(
        "chat.host_field",
        "An assistant message holds the API's fields, and those that its host knows",
        ("refused", "some"),
    ),
    Rule(
        "chat.host_reasoning",
        "Where a host wants its reasoning back, a message with calls holds it",
        ("some",),
    ),
    Rule("chat.sealed", "What a model has sealed goes to that model alone", ("some",)),
    Rule("chat.tool_declared", "Tools that were called are still declared", ("discouraged",)),
    Rule(
        "chat.cached_prefix",
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
