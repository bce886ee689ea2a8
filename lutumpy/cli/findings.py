"""What the transcript doctor says of a document, and how a problem looks on the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from lutumpy.apis import serving
from lutumpy.cli.documents import Document
from lutumpy.cli.terminal import cut_text, styled
from lutumpy.doctor import Problem, check_messages
from lutumpy.rules.shape import ApiRules

__all__ = [
    "CERTAINTIES",
    "conversation",
    "counted",
    "doctor_options",
    "document_fields",
    "problem_fields",
    "problem_lines",
    "problems_of",
]

CERTAINTIES: Mapping[str, tuple[str, str]] = {
    "refused": ("refused", "bold red"),
    "some": ("may be refused", "yellow"),
    "discouraged": ("discouraged", "cyan"),
}
_LONGEST = 600


def problems_of(document: Document) -> list[Problem]:
    """Every rule that the document breaks: those of a request for a request, those of a transcript
    for all.
    """
    found = check_messages(document.api, conversation(document), **doctor_options(document))
    if not document.is_request:
        return found
    rules: ApiRules = serving(document.api, "rules")
    known = {(problem.rule, problem.position, problem.message) for problem in found}
    body = document.body
    if "model" not in body and document.model is not None:  # its path names it
        body = {**body, "model": document.model}
    whole = rules.check_request(body, compatible=document.compatible)
    return [p for p in whole if (p.rule, p.position, p.message) not in known] + found


def conversation(document: Document) -> Any:
    """The messages as the doctor takes them: whatever is in their place."""
    return document.body.get(document.messages_key, [])


def doctor_options(document: Document) -> dict[str, Any]:
    """What else the doctor should know of the document, to check and to mend it."""
    thinking = document.body.get("thinking")
    kind = thinking.get("type") if isinstance(thinking, Mapping) else None
    return {
        "tools": document.tools,
        "server_held_prefix": document.server_held_prefix,
        "system": document.system,
        "model": document.model,
        "thinking": kind if isinstance(kind, str) else None,
        "compatible": document.compatible,
        "host": document.host,
        "origin": document.origin,
        "before": document.before,
    }


def document_fields(document: Document) -> dict[str, Any]:
    """What every JSON line says of its document."""
    place = document.place
    return {"file": place.file, "line": place.line, "number": place.number, "api": document.api}


def problem_fields(problem: Problem) -> dict[str, Any]:
    """A problem as the fields of a JSON line."""
    return {
        "rule": problem.rule,
        "certainty": problem.certainty,
        "position": problem.position,
        "path": list(problem.path),
        "message": problem.message,
        "status": problem.status,
        "code": problem.code,
        "call_ids": list(problem.call_ids),
        "tools": list(problem.tools),
    }


def problem_lines(problem: Problem, *, full: bool = False) -> Iterator[Text]:
    """A problem in two or three lines: what and where, the provider's words, its calls."""
    word, style = CERTAINTIES[problem.certainty]
    yield styled(
        "  ", (word, style), f"  {problem.position or 'the request'}  ", (problem.rule, "dim")
    )
    message = problem.message if full else cut_text(problem.message, _LONGEST)
    yield styled("    ", message.replace("\n", " "))
    about = [
        *[f"call {call_id}" for call_id in problem.call_ids],
        *[f"tool {name}" for name in problem.tools],
    ]
    if about:
        shown = about if full else about[:8]
        rest = "" if len(shown) == len(about) else f" and {len(about) - len(shown)} more"
        yield styled(("    " + ", ".join(shown) + rest, "dim"))


def counted(number: int, one: str, many: str = "") -> str:
    """`1 problem`, `2 problems`."""
    return f"{number} {one}" if number == 1 else f"{number} {many or one + 's'}"
