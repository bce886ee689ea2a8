"""What a script says: answers of a model and errors of its provider, without the spelling of an
API.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

from pydantic_core import to_json

from lutumpy.plain.json_values import INVALID_JSON
from lutumpy.plain.values import dataclass

__all__ = [
    "FINISHES",
    "Call",
    "Failure",
    "Reply",
    "object_input",
    "read_script",
    "split_text",
    "streamed_input",
]

E = TypeVar("E")

FINISHES = ("stop", "tool_calls", "length", "content_filter", "refusal", "paused")

# Characters of a delta: a few, so that words and JSON are split at every kind of place.
_DELTA = 8


def split_text(text: str) -> list[str]:
    """`text` in parts of a few characters, as models stream it."""
    return [text[start : start + _DELTA] for start in range(0, len(text), _DELTA)]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call in a scripted answer.

    Attributes:
        name: Name of the tool, declared or not.
        arguments: A mapping, or the argument text as the model wrote it, which need not be JSON.
        id: Id of the call; counted in the provider's shape if not given.
        server_label: The label of a server whose tool it calls: then the provider asks whether it
            may make the call. An API that never asks for an approval has an ordinary call instead.
        is_text: Whether `arguments` is the free text of a text tool. APIs that know such calls send
            it as it is, any other sends `{"input": text}`.
    """

    name: str
    arguments: str | Mapping[str, Any] = "{}"
    id: str | None = None
    server_label: str | None = None
    is_text: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"Call takes a tool's name as text, not {self.name!r}")
        if not isinstance(self.arguments, (str, Mapping)):
            raise TypeError(
                "arguments= takes a mapping or the text that the model wrote, "
                f"not {self.arguments!r}"
            )
        if self.is_text and not isinstance(self.arguments, str):
            raise TypeError(f"the call of a text tool takes its text, not {self.arguments!r}")

    @classmethod
    def of_text(cls, name: str, text: str, id: str | None = None) -> Call:
        """A call of a text tool, with the text that the model wrote."""
        return cls(name, text, id, is_text=True)

    @property
    def text(self) -> str:
        """The arguments as text, compact; of a text tool, as a function takes them."""
        if isinstance(self.arguments, str) and not self.is_text:
            return self.arguments
        try:
            return to_json(self.object, inf_nan_mode="constants").decode()
        except ValueError:  # surrogates, which a model may write, and what isn't JSON
            return json.dumps(self.object, ensure_ascii=False, separators=(",", ":"))

    @property
    def object(self) -> dict[str, Any] | None:
        """The arguments as a JSON object, or None if they aren't one."""
        if self.is_text:
            return {"input": self.arguments}
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
        finish: Why it stopped: stop, tool_calls, length, content_filter, refusal, paused. Found
            from the rest if not given.
        reasoning: What it thought; an empty text gives a block without words, as models that hide
            them send. An API that shows no reasoning leaves it out.
        refusal: The words of a refusal.
        usage: Input and output tokens; if not given, the test server counts them, and what was
            cached of them.
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
        """`usage`, or a count by the length of what was written."""
        if self.usage is not None:
            return self.usage
        called = sum([len(call.name) + len(call.text) for call in self.calls])
        written = len(self.text) + len(self.refusal or "") + called
        return 20, max(1, written // 4)


def object_input(reply: Reply, call: Call) -> dict[str, Any]:
    """The arguments of a call where the API has to send an object: what a model was cut off in is
    lost, other text is wrapped.
    """
    value = call.object
    if value is not None:
        return value
    is_lost = reply.finish_reason == "length" or not call.text.strip()
    return {} if is_lost else {INVALID_JSON: call.text}


def streamed_input(call: Call) -> str:
    """The same as such an API streams it: the model's own spacing, and nothing for no arguments."""
    value = call.object
    if value is None:
        return call.text
    if not value:
        return ""
    is_written = isinstance(call.arguments, str) and not call.is_text
    return call.text if is_written else json.dumps(value, ensure_ascii=False)


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


def read_script(script: Iterable[E]) -> deque[E]:
    """The entries of a script; `TypeError` for one entry where a list of them is wanted."""
    is_entry = isinstance(script, (Reply, Failure, Mapping, str, bytes))
    if is_entry or not isinstance(script, Iterable):
        raise TypeError(f"a script is a list of answers, as [Reply(text='Hello.')], not {script!r}")
    return deque(script)
