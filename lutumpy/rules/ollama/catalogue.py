"""The rules about a history of Ollama's API, one row each.

What mends a breach of one is in `doctor/ollama/stages.py`, under the same id.
"""

# The server on one's own machine refuses little: what its JSON reader can't put into its fields.
# How calls and results are is left to the template of the model. The models in Ollama's cloud are
# stricter: they refuse results without calls and calls without results ("Invalid tool usage:
# mismatch between tool calls and tool results", "Unexpected tool call id ... in tool results", both
# reported). So these rules hold for some models.

from __future__ import annotations

from collections.abc import Mapping

from lutumpy.rules.catalogue import Rule, rules_by_id

__all__ = ["RULES"]

RULES: Mapping[str, Rule] = rules_by_id(
    Rule("ollama.nesting", "A message is nested at most 300 levels deep", ("some",)),
    Rule(
        "ollama.encoding",
        "Text is whole characters and every value is one that JSON knows",
        ("refused", "some"),
    ),
    Rule("ollama.messages", "The messages are a list of objects", ("refused", "some")),
    Rule("ollama.role", "A role is system, user, assistant or tool", ("refused", "some")),
    Rule(
        "ollama.content",
        "Content is a text, and nothing is said under another API's key",
        ("refused", "discouraged"),
    ),
    Rule("ollama.images", "Images are a list of texts in base64", ("refused",)),
    Rule("ollama.thinking", "Thinking is a text", ("refused",)),
    Rule("ollama.tool_calls", "`tool_calls` is a list of objects with a function", ("refused",)),
    Rule("ollama.call_id", "The id of a call, where it has one, is a text", ("refused",)),
    Rule("ollama.call_name", "A call names its tool", ("refused", "some")),
    Rule("ollama.arguments", "The arguments of a call are an object", ("refused",)),
    Rule(
        "ollama.result_names",
        "`tool_name` and `tool_call_id`, where they are, are texts",
        ("refused",),
    ),
    Rule(
        "ollama.results_after_calls",
        "Each call is answered by a message right after the one with the call",
        ("some",),
    ),
    Rule("ollama.call_for_result", "A result answers a call of the message before it", ("some",)),
    Rule("ollama.single_result", "A call has one result", ("some",)),
    Rule("ollama.tool_declared", "Tools that were called are still declared", ("discouraged",)),
    Rule(
        "ollama.cached_prefix",
        "A request begins with the one before it (with `before=`)",
        ("discouraged",),
    ),
)
"""In the order in which shapes and sequence are checked."""
