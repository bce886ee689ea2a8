"""The rules about requests of generateContent, in the words of the Gemini API.

Sources: refusals that were recorded or that users report, each by its words; 1,545 accepted
requests; the discovery document of Vertex AI (November 2026) and the types of google-genai (3.4).
What the Gemini API and Vertex say differently, this says as the Gemini API, unless only Vertex's
words are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lutumpy.plain.pointer import Path
from lutumpy.rules.block_wire import join_turns
from lutumpy.rules.declared import undeclared
from lutumpy.rules.encoding import EncodingWords, check_encoding
from lutumpy.rules.gemini.blocks import check_contents, check_parts
from lutumpy.rules.gemini.catalogue import is_vendor_only
from lutumpy.rules.gemini.fields import field, key_of
from lutumpy.rules.gemini.models import is_misspelled
from lutumpy.rules.gemini.requests import check_parameters
from lutumpy.rules.gemini.sequence import check_sequence
from lutumpy.rules.gemini.tools import check_tools, declarations
from lutumpy.rules.gemini.wire import WIRE
from lutumpy.rules.gemini.wording import KIND, problem, unknown_name, wrong_value
from lutumpy.rules.hosts import for_compatible_host
from lutumpy.rules.nesting import check_nesting
from lutumpy.rules.problem import Problem, text

__all__ = ["WHERE", "check_messages", "check_request", "is_continued"]

WHERE = "contents[{}]"
"""How the API names a content by its index."""

_WORDS = EncodingWords(
    "Invalid JSON payload received. Expected a value.",
    "Invalid JSON payload received. Invalid UTF-8.",
    kind=KIND,
)
_CONTENT = "type.googleapis.com/google.ai.generativelanguage.v1beta.Content"


def is_continued(body: Mapping[str, Any]) -> bool:
    """Whether a cache of the server holds the beginning of a conversation."""
    return field(body, "cachedContent") is not None


def check_request(
    body: Any, *, issued: Mapping[str, Any] | None = None, compatible: bool = False
) -> list[Problem]:
    """Every problem of a request body, in the order in which the API would meet them. No JSON makes
    it raise.

    Args:
        body: The request. Its path names the model; `model` says it here, where it is known.
        issued: Signature to the part that the server has sent with it.
        compatible: The host is another than Google's: what only Google is known to refuse has the
            certainty "some".
    """
    if not isinstance(body, Mapping):
        message = 'Invalid JSON payload received. Unknown name "": Root element must be a message.'
        return [Problem("gemini.body", "", message, "refused", kind=KIND)]
    model = text(body.get("model"))
    contents = body.get("contents")
    system = field(body, "systemInstruction")
    found = _check_model(body.get("model"))
    deep, contents = check_nesting("gemini", contents, WHERE)
    found += [_of_google(entry) for entry in deep]
    found += check_encoding("gemini", contents, WHERE, _WORDS)
    found += check_parameters(body)
    found += check_contents(contents) + _check_system(system)
    found += check_tools(field(body, "tools"))
    found += check_sequence(contents, model=model, issued=issued, held=is_continued(body))
    if field(body, "tools") is not None:
        found += _check_declared(contents, declarations(field(body, "tools")))
    return for_compatible_host(found, is_vendor_only) if compatible else found


def check_messages(
    contents: Any,
    system: Any = None,
    *,
    tools: Sequence[Any] | None = None,
    model: str | None = None,
    held: bool = False,
    compatible: bool = False,
) -> list[Problem]:
    """Every problem of a list of contents; arguments as of `lutumpy.doctor.check_messages`."""
    found = check_encoding("gemini", contents, WHERE, _WORDS)
    found += check_contents(contents) + _check_system(system)
    found += check_sequence(contents, model=model, held=held)
    if tools is not None:
        names = [tool for tool in tools if isinstance(tool, str)]
        found += _check_declared(contents, names or declarations(tools))
    return for_compatible_host(found, is_vendor_only) if compatible else found


def _of_google(found: Problem) -> Problem:
    return Problem(
        found.rule, found.position, found.message, found.certainty, kind=KIND, path=found.path
    )


def _check_model(model: Any) -> list[Problem]:
    """A name in words that no model of this maker has. The models change, so it isn't sure."""
    if model is not None and not isinstance(model, str):
        return [wrong_value("gemini.model", ("model",), "TYPE_STRING", model)]
    if model is None or not is_misspelled(model):
        return []
    message = (
        f"models/{model.removeprefix('models/')} is not found for API version v1beta, or is "
        "not supported for generateContent. Call ModelService.ListModels to see the list of "
        "available models and their supported methods."
    )
    return [Problem("gemini.model", "model", message, "some", status=404, kind="NOT_FOUND")]


def _check_system(system: Any) -> list[Problem]:
    """`systemInstruction` is a content, whatever its role."""
    if system is None:
        return []
    path = ("systemInstruction",)
    if not isinstance(system, Mapping):
        return [wrong_value("gemini.system", path, _CONTENT, system)]
    found = [
        unknown_name("gemini.system", path, str(key))
        for key in system
        if key not in ("role", "parts")
    ]
    role = system.get("role")
    if role is not None and not isinstance(role, str):
        found.append(wrong_value("gemini.system", (*path, "role"), "TYPE_STRING", role))
    return found + check_parts(path, system)


def _check_declared(contents: Any, tools: Sequence[Any]) -> list[Problem]:
    """Functions that a history calls and the request doesn't declare [recorded: 42 accepted]."""
    calls: list[tuple[str, str, str]] = []
    places: dict[str, Path] = {}
    for turn in join_turns(WIRE, contents):
        for path, call in turn.calls:
            if isinstance(call.get("name"), str):
                place = f"contents[{path[0]}].parts[{path[2]}]"
                places[place] = (*path, key_of(call, "name"))
                calls.append((place, call["name"], text(call.get("id")) or ""))
    return [
        problem(
            entry.rule,
            places[entry.position],
            entry.message,
            entry.certainty,
            call_ids=tuple(filter(None, entry.call_ids)),
            tools=entry.tools,
        )
        for entry in undeclared("gemini.tool_declared", calls, tools)
    ]
