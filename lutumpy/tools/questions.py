"""Questions in the middle of a call: what is asked, and how the call goes on (rules LR23 to LR26).

A call that ends with a question isn't answered yet. It is sent again with the answers: a leg. Legs
are counted from 1, and each is begun and recorded by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["Asked", "CallLeg", "Question", "asking", "find_misfit", "may_ask"]

F = TypeVar("F", bound=Callable[..., Any])

_ACTIONS = ("accept", "decline", "cancel")


@dataclass(frozen=True, slots=True)
class Question:
    """What a server wants to know from a person before a call goes on. Its texts are a stranger's.

    Attributes:
        call_id: The id of the call.
        tool: The name of the tool.
        server: The name of the server's toolset.
        key: The server's name for the question, unique in one leg of the call.
        message: What is asked.
        form: The JSON Schema of what is to be filled in; `None` where an address is shown.
        url: An address for the person to open, which nothing here opens; `None` for a form.
        leg: Which leg of the call ended with it, from 1.
        since: When it was asked, by the clock of the process that ran the call. Servers take
            answers for a limited time, ten minutes with the SDK's own default.
    """

    call_id: str
    tool: str
    server: str
    key: str
    message: str
    form: Mapping[str, JsonValue] | None = field(default=None, hash=False)
    url: str | None = None
    leg: int = 1
    since: datetime | None = None

    def dump(self) -> dict[str, JsonValue]:
        """The question as JSON values."""
        since = None if self.since is None else self.since.isoformat()
        return {**{name: getattr(self, name) for name in _FIELDS}, "since": since}

    @staticmethod
    def load(data: Mapping[str, Any]) -> Question:
        """The question of a dump; what a newer release has more is left out."""
        since = data.get("since")
        values = {name: data[name] for name in _FIELDS if name in data}
        moment = None if since is None else datetime.fromisoformat(since)
        return Question(**{**values, "since": moment})


_FIELDS = tuple([each.name for each in fields(Question)])


class CallLeg(NamedTuple):
    """Which leg of a call is to be run.

    Attributes:
        number: From 1.
        resume: What the code that asked needs to go on, as `Asked` gave it, with the `answers`;
            `None` for the first leg.
    """

    number: int
    resume: dict[str, JsonValue] | None


class Asked(Exception):
    """Raised by a tool's code, where its ticket has a leg: a person has to answer something first.

    Args:
        server: The name of the server's toolset.
        questions: By key: `message`, and `form` or `url`. None where the call is to be sent again
            after a moment.
        resume: What the code needs to go on, as JSON; the answers are added to it.

    Attributes:
        server: As given.
        questions: As given.
        resume: As given.
    """

    def __init__(
        self,
        server: str,
        questions: Mapping[str, Mapping[str, JsonValue]],
        resume: Mapping[str, JsonValue],
    ) -> None:
        self.server: str = server
        self.questions: Mapping[str, Mapping[str, JsonValue]] = questions
        self.resume: Mapping[str, JsonValue] = resume
        super().__init__(f"{server} asks {len(questions)} questions before the call goes on")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.server, dict(self.questions), dict(self.resume))


def asking(run: F) -> F:
    """Marks the code of a tool that may raise `Asked`; gives the code."""
    run.asks_questions = True  # type: ignore[attr-defined]
    return run


def may_ask(tool: Any) -> bool:
    """Whether the code of a tool may ask a person something in the middle of a call."""
    return getattr(tool.run, "asks_questions", False) is True


def _can_be_sent(value: Any) -> bool:
    """Whether a field of a form may have this value, whatever the form says: MCP has no other."""
    if isinstance(value, (list, tuple)):
        return all(isinstance(one, str) for one in value)
    return value is None or isinstance(value, (str, int, float))


def find_misfit(form: Mapping[str, Any] | None, answer: Any) -> str | None:
    """What is wrong with an answer, for the person who gave it (rule LR24).

    Args:
        form: The JSON Schema of what is to be filled in; `None` where an address was shown.
        answer: `{"action": "accept", "content": {...}}`, or another action alone.
    """
    from lutumpy.tools.json_schema import JsonSchema, SchemaError  # needs an extra

    if not isinstance(answer, Mapping) or answer.get("action") not in _ACTIONS:
        return f"an answer is a mapping whose action is one of {', '.join(_ACTIONS)}"
    unknown = sorted(set(answer) - {"action", "content"})
    if unknown:
        return f"an answer has an action and a content, not {unknown[0]!r:.100}"
    content = answer.get("content")
    if answer["action"] != "accept":
        return None
    if form is None:
        return None if content is None else "there is nothing to fill in"
    if not isinstance(content, Mapping):
        return "the form isn't filled in: content is a mapping"
    try:
        failures = JsonSchema(form).failures(dict(content))
    except SchemaError as error:
        return f"the server's form can't be used: {error}"
    places = [f"{'.'.join(map(str, failure.path))}: {failure.text}" for failure in failures]
    places += [
        f"{name}: a field holds a text, a number, true or false, or a list of texts"
        for name, value in content.items()
        if not _can_be_sent(value)
    ]
    return "; ".join([place.removeprefix(": ") for place in places[:5]]) or None
