"""Answers of a model, written once and rendered as any of the three APIs would send them."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, TypeVar

from lutumpy.core.items import Api

from . import render_anthropic, render_chat, render_responses

__all__ = ["Api", "Call", "Failure", "Reply", "render", "render_failure", "render_stream"]

E = TypeVar("E")

_RENDERERS: Mapping[str, ModuleType] = {
    "openai_chat": render_chat,
    "openai_responses": render_responses,
    "anthropic_messages": render_anthropic,
}


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call in a scripted answer.

    Attributes:
        name: Name of the tool, declared or not.
        arguments: A mapping, or the argument text as the model wrote it, which need not be JSON.
        id: Id of the call; counted in the provider's shape if not given.
    """

    name: str
    arguments: str | Mapping[str, Any] = "{}"
    id: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"Call takes a tool's name as text, not {self.name!r}")
        if not isinstance(self.arguments, (str, Mapping)):
            raise TypeError(
                f"arguments= takes a mapping or the text that the model wrote, not {self.arguments!r}"
            )

    @property
    def text(self) -> str:
        """The arguments as text, compact."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False, separators=(",", ":"))

    @property
    def object(self) -> dict[str, Any] | None:
        """The arguments as a JSON object, or None if they are none."""
        if not isinstance(self.arguments, str):
            return dict(self.arguments)
        try:
            value = json.loads(self.arguments)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model.

    Attributes:
        text: What it says.
        calls: The tools that it calls, in order.
        finish: Why it stopped: stop, tool_calls, length, content_filter, refusal, paused. Found from the rest if not
            given.
        reasoning: What it thought; an empty text gives a block without words, as models that hide them send. Chat
            Completions shows no reasoning.
        refusal: The words of a refusal.
        usage: Input and output tokens.
        model: Name of the model that answers; the requested one if not given.
    """

    text: str = ""
    calls: Sequence[Call] = ()
    finish: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    usage: tuple[int, int] | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"text= takes text, not {self.text!r}")
        if isinstance(self.calls, Call) or any(not isinstance(call, Call) for call in self.calls):
            raise TypeError(f"calls= takes a list of Call(name, arguments), not {self.calls!r}")
        if self.finish is not None and self.finish not in FINISHES:
            raise ValueError(f"finish={self.finish!r} is none of {', '.join(FINISHES)}")

    @property
    def finish_reason(self) -> str:
        """`finish`, or what the rest implies."""
        if self.finish is not None:
            return self.finish
        if self.refusal is not None:
            return "refusal"
        return "tool_calls" if self.calls else "stop"

    @property
    def tokens(self) -> tuple[int, int]:
        """`usage`, or a count by the length of what was said."""
        if self.usage is not None:
            return self.usage
        said = (
            len(self.text)
            + len(self.refusal or "")
            + sum(len(call.name) + len(call.text) for call in self.calls)
        )
        return 20, max(1, said // 4)


FINISHES = ("stop", "tool_calls", "length", "content_filter", "refusal", "paused")


@dataclass(frozen=True, slots=True)
class Failure:
    """An HTTP error in place of an answer.

    Attributes:
        status: HTTP status, 400 to 599.
        message: The error's message.
        kind: `error.type`; the provider's usual one for the status if empty.
        headers: More headers, such as `retry-after`.
    """

    status: int
    message: str
    kind: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def entries(script: Iterable[E]) -> deque[E]:
    """The entries of a script; `TypeError` for one entry where a list of them is wanted."""
    if isinstance(script, (Reply, Failure, Mapping, str, bytes)) or not isinstance(
        script, Iterable
    ):
        raise TypeError(f"a script is a list of answers, as [Reply(text='Hello.')], not {script!r}")
    return deque(script)


def render(
    reply: Reply, api: Api, *, number: int, model: str, body: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The JSON of the answer, as `api` sends it.

    Args:
        reply: The answer.
        api: `openai_chat`, `openai_responses` or `anthropic_messages`.
        number: Number of the answer; ids are counted from it, so equal numbers give equal ids.
        model: The model that was asked for.
        body: The request, where the answer depends on it: Chat's `n` gives as many choices, which all say the same,
            Messages' `compaction` a summary, which is the reply's text; Responses repeats its settings.

    On `anthropic_messages`, arguments that are no JSON object become `{}` where the answer was cut off, and else
    `{"INVALID_JSON": text}`.
    """
    answer: dict[str, Any] = _renderer(api).render(
        reply, number=number, model=reply.model or model, body=body or {}
    )
    return answer


def render_stream(
    reply: Reply, api: Api, *, number: int, model: str, body: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The same answer as the JSON of its stream events, in the order in which `api` sends them; arguments as of `render`.

    Chat chunks end with the usage chunk, which the API sends only if asked. On `anthropic_messages` the text of
    arguments is streamed as it is, broken or not.
    """
    render_events = _renderer(api).render_stream
    events: list[dict[str, Any]] = render_events(
        reply, number=number, model=reply.model or model, body=body or {}
    )
    return events


def _renderer(api: str) -> ModuleType:
    if api not in _RENDERERS:
        raise ValueError(f"api={api!r} is none of {', '.join(_RENDERERS)}")
    return _RENDERERS[api]


ANTHROPIC_KINDS: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def render_failure(
    api: Api,
    status: int,
    message: str,
    *,
    kind: str = "",
    param: str | None = None,
    code: str | None = None,
    request_id: str = "",
) -> dict[str, Any]:
    """The JSON of an error, in the envelope of `api`; Anthropic's has a code in its `details`."""
    if api == "anthropic_messages":
        kind = kind or ANTHROPIC_KINDS.get(
            status, "api_error" if status >= 500 else "invalid_request_error"
        )
        error: dict[str, Any] = {"type": kind, "message": message}
        if code is not None:
            error["details"] = {"error_code": code}
        return {"type": "error", "error": error, "request_id": request_id}
    if not kind:
        kind = (
            "requests"
            if status == 429
            else "server_error"
            if status >= 500
            else "invalid_request_error"
        )
        code = code or ("rate_limit_exceeded" if status == 429 else None)
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
