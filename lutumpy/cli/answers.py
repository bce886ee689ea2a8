"""The answer to a request, whole or streamed, in every form in which recorders keep it."""

# What is hard: how an answer was kept says nothing of its API, so each form may come with each API.
#
#     what was kept                              its values
#     a JSON object                              itself
#     a list of events                           its elements
#     the text of an event stream                the data of each event
#     the text of JSON lines, or of an array     each line, each element
#     the text of one JSON object                that object
#
# An event may have an envelope: {"event": its name, "data": what it holds}. Where nothing but the
# envelope has the name, as with the events of Converse, it goes back into the event.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from lutumpy import AssistantTurn, LutumpyError, StreamDecoder
from lutumpy.apis import Api, by_name, is_built_in, serving
from lutumpy.cli.reading import Value, read_text
from lutumpy.rules.shape import AnswerForm, ApiRules, Signs

__all__ = ["answer_values", "api_of_answer", "is_event", "looks_like", "read_answer"]

# Characters of an event stream in which its first event begins, and events of it that are looked
# at.
_STREAM_START = 4000
_FIRST_EVENTS = 10
_ENVELOPE = frozenset({"event", "data", "payload", "id", "retry"})


def answer_values(answer: Any) -> Iterator[Mapping[str, Any]]:
    """The objects in an answer, up to the first place that can't be read: the answer itself, or the
    events of its stream without their envelopes.
    """
    if isinstance(answer, str):
        for entry in read_text(answer):
            if not isinstance(entry, Value):
                return
            if not isinstance(entry.value, str):
                yield from answer_values(entry.value)
    elif isinstance(answer, list):
        for element in answer:
            yield from answer_values(element)
    elif isinstance(answer, Mapping):
        if answer and answer.keys() <= _ENVELOPE:
            yield from _open_envelope(answer)
        else:
            yield answer


def _open_envelope(envelope: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    name = envelope.get("event")
    inner = envelope.get("data", envelope.get("payload"))
    if isinstance(inner, Mapping) and isinstance(name, str) and _api_of_object(inner) is None:
        yield {name: inner}
    else:
        yield from answer_values(inner)


def api_of_answer(answer: Any) -> Api | None:
    """The API that wrote an answer, in any form; None where it doesn't say."""
    for value in islice(answer_values(answer), _FIRST_EVENTS):
        api = _api_of_object(value)
        if api is not None:
            return api
    return _api_of_marks(answer[:_STREAM_START]) if isinstance(answer, str) else None


def _api_of_object(value: Mapping[str, Any]) -> Api | None:
    for api, sign in _signs().items():
        if any(looks_like(value, form) for form in (*sign.events, *sign.answers)):
            return api
    return None


def is_event(value: Mapping[str, Any]) -> bool:
    """Whether an object is an event of a stream, and can't be a whole answer."""
    forms = [form for sign in _signs().values() for form in sign.events]
    return any(looks_like(value, form) for form in forms)


def _api_of_marks(start: str) -> Api | None:
    # The longest mark of a built-in API counts: a short one may also be a word of a schema that a
    # request's echo repeats. Without one the longest of an added API does.
    found = [
        (is_built_in(api), len(mark), api)
        for api, sign in _signs().items()
        for mark in sign.stream_marks
        if mark in start
    ]
    return max(found)[2] if found else None


def looks_like(value: Any, form: AnswerForm) -> bool:
    """Whether a value is an object of a form."""
    if not isinstance(value, Mapping):
        return False
    return all(key in value and _fits(value[key], wanted) for key, wanted in form.items())


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, (str, bool)):
        return bool(value == wanted)
    if isinstance(wanted, Mapping):
        return looks_like(value, wanted)
    if isinstance(wanted, type):
        return isinstance(value, wanted)
    if isinstance(wanted, list):
        entries = value if isinstance(value, list) else []
        return any(looks_like(entry, form) for entry in entries for form in wanted)
    return isinstance(value, str) and wanted.match(value) is not None


def _signs() -> Mapping[Api, Signs]:
    """By what each API's answers are known; one may be added while a program runs."""
    rules: Mapping[Api, ApiRules] = by_name("rules")
    return {api: known.SIGNS for api, known in rules.items()}


def read_answer(api: Api, answer: Any) -> AssistantTurn | None:
    """The turn in an answer; `None` where there is none, or none that can be read."""
    adapter = serving(api, "adapter")
    values = list(answer_values(answer))
    # One object may be a whole answer, or the only event of a stream.
    if len(values) == 1 and not is_event(values[0]):
        try:
            whole: AssistantTurn = adapter.response(values[0])
        except (LutumpyError, ValueError, TypeError):
            pass
        else:
            return whole
    decoder: StreamDecoder = adapter.stream_decoder()
    try:
        for value in values:
            for _ in decoder.feed(value):
                pass
        return decoder.finish()
    except (LutumpyError, ValueError, TypeError):
        # A broken answer doesn't hide the request, and who shows it isn't the one to judge it.
        return None
