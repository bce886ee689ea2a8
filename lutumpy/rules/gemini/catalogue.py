"""The rules about a history of generateContent, one row each.

What mends a breach of one is in `doctor/gemini/stages.py`, under the same id.
"""

from __future__ import annotations

from collections.abc import Mapping

from lutumpy.errors import Problem
from lutumpy.rules.catalogue import Rule, rules_by_id

__all__ = ["RULES", "is_vendor_only"]

_REQUEST_RULES_OF_ALL = frozenset({"gemini.body"})

RULES: Mapping[str, Rule] = rules_by_id(
    Rule(
        "gemini.nesting",
        "A content is nested at most 300 levels deep",
        ("some",),
        vendor_only=True,
    ),
    Rule(
        "gemini.encoding",
        "Text is whole characters and every value is one that JSON knows",
        ("refused", "some"),
    ),
    Rule("gemini.contents", "The contents are a list of objects, and at least one", ("refused",)),
    Rule("gemini.role", "A role is user or model", ("refused",)),
    Rule(
        "gemini.unknown_key",
        "Contents, parts, calls and results have only keys that the API knows",
        ("refused",),
        vendor_only=True,
    ),
    Rule("gemini.parts", "The parts of a content are a list", ("refused",)),
    Rule("gemini.empty_parts", "A content has at least one part", ("refused",), vendor_only=True),
    Rule(
        "gemini.part",
        "A part is an object with one kind of data",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule("gemini.text", "The text of a part is a text", ("refused",)),
    Rule("gemini.id", "The id of a call or a result is a text", ("refused",), vendor_only=True),
    Rule("gemini.name", "Calls and results have a name", ("refused",)),
    Rule("gemini.args", "The arguments of a call are an object", ("refused",)),
    Rule("gemini.response", "The response of a result is an object", ("refused", "some")),
    Rule(
        "gemini.result_parts",
        "What a result shows is a list of files or their bytes",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "gemini.media",
        "A file has its address, and bytes are base64",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "gemini.media_type",
        "The media type of a file is one that the API shows the model",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "gemini.file_address",
        "An address is one that the API may fetch",
        ("some",),
        vendor_only=True,
    ),
    Rule(
        "gemini.signature_bytes",
        "A signature is base64, in either alphabet",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "gemini.system",
        "`systemInstruction` is a content",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "gemini.part_role",
        "Calls are in contents of the model, results in contents of the user",
        ("refused",),
    ),
    Rule("gemini.user_first", "The first content is the user's", ("refused", "some")),
    Rule(
        "gemini.results_count",
        "The user's turn after calls has as many results as there are calls",
        ("refused",),
    ),
    Rule(
        "gemini.results_first",
        "Results come first in the turn after their calls",
        ("refused", "some"),
    ),
    Rule(
        "gemini.results_alone",
        "The content of results holds nothing else",
        ("discouraged",),
        vendor_only=True,
    ),
    Rule("gemini.unique_ids", "The calls of one turn have different ids", ("some",)),
    Rule("gemini.result_id", "A result has the id of its call, or both have none", ("some",)),
    Rule("gemini.result_name", "A result has the name of its call", ("some",)),
    Rule("gemini.result_order", "Results keep the order of their calls", ("discouraged",)),
    Rule("gemini.call_for_result", "A result follows a turn with calls", ("refused",)),
    Rule(
        "gemini.signature",
        "The first call of a content has its signature, from Gemini 3 on",
        ("refused", "some"),
        vendor_only=True,
    ),
    Rule(
        "gemini.second_signature",
        "No other call of a content has one",
        ("discouraged",),
        vendor_only=True,
    ),
    Rule(
        "gemini.signature_modified",
        "A signature goes back with the part that it came with (only a server can know)",
        ("refused",),
        vendor_only=True,
    ),
    Rule(
        "gemini.sealed",
        "What a host or a model has sealed goes to who can open it",
        ("refused", "some"),
    ),
    Rule(
        "gemini.tool_declared",
        "Functions that were called are still declared",
        ("discouraged",),
        vendor_only=True,
    ),
    Rule(
        "gemini.cached_prefix",
        "A request begins with the one before it (with `before=`)",
        ("discouraged",),
    ),
)
"""In the order in which shapes, pairs and signatures are checked."""


def is_vendor_only(problem: Problem) -> bool:
    """Whether other hosts than Google's may accept what a problem is about."""
    rule = RULES.get(problem.rule)
    if rule is None:
        return problem.rule not in _REQUEST_RULES_OF_ALL
    return rule.vendor_only
