"""Whether a word is treated as its row says: tried on the adapter, where that can be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from sdk_words.answers import WIRES, Answer
from sdk_words.words import Row, Word

from lutumpy import AssistantTurn, Transcript
from lutumpy.adapters.bedrock.errors import event_error
from lutumpy.adapters.gemini.errors import sdk_error as gemini_error
from lutumpy.adapters.provider_errors import adapter_error, is_sdk_error
from lutumpy.adapters.writing import error_body
from lutumpy.apis import serving
from lutumpy.errors import AdapterError, LutumpyError
from lutumpy.models import (
    OpaqueBlock,
    OutputSpec,
    ResultBlock,
    TextBlock,
    TextInput,
    ToolOffering,
    ToolResults,
    ToolSpec,
)

__all__ = ["fault_of"]

_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
_TEXT_SCHEMA = {"type": "object", "properties": {"input": {"type": "string"}}}
_TOOLS = (
    ToolSpec("look", "It looks.", _SCHEMA),
    ToolSpec("write", "It writes.", _TEXT_SCHEMA, text=TextInput()),
)
_OFFER = ToolOffering(_TOOLS, "required", None, False)
# Fields that are read with what stands beside them.
_READ_BESIDE = ("content", "role")


def fault_of(api: str, word: Word, row: Row) -> str:
    """What is wrong with a row; empty where its claim holds, or can't be tried."""
    try:
        return _CLAIMS.get(word.kind, _nothing)(api, word, row)
    except AdapterError as error:
        return "" if row.treatment == "refused" else f"AdapterError: {error}"


def _nothing(api: str, word: Word, row: Row) -> str:
    return ""


def _adapter(api: str) -> Any:
    return serving(api, "adapter")


# --- answers --------------------------------------------------------------------------------------


def _streamed(api: str, events: list[dict[str, Any]]) -> AssistantTurn:
    decoder = _adapter(api).stream_decoder()
    for event in events:
        decoder.feed(event)
    turn: AssistantTurn = decoder.finish()
    return turn


def _next_body(api: str, turn: AssistantTurn) -> dict[str, Any]:
    """The next request after an answer, its calls answered."""
    transcript = Transcript()
    transcript.push_user("Go.")
    results = tuple(
        ResultBlock(call.id or f"call_{n}", call.name, "Done.", "ok", call.kind)
        for n, call in enumerate(turn.calls)
        if call.answerable
    )
    if any(call.answerable and not call.id for call in turn.calls):
        named = {n: f"call_{n}" for n, call in enumerate(turn.calls) if not call.id}
        turn = turn.with_ids(named)
    transcript.append_turn(turn, ToolResults(results) if results else None)
    if not results and not turn.results_only:
        transcript.push_user("Go on.")
    body: dict[str, Any] = _adapter(api).request(transcript)
    return body


def _holds(value: Any, sample: Any) -> bool:
    """Whether a JSON value is, or has somewhere in it, a sample: its nulls don't count."""
    if _covers(value, sample):
        return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_holds(each, sample) for each in inner)


def _covers(value: Any, sample: Any) -> bool:
    if isinstance(sample, dict) and isinstance(value, dict):
        return all(
            key in value and _covers(value[key], inner)
            for key, inner in sample.items()
            if inner is not None
        )
    if isinstance(sample, list) and isinstance(value, list):
        return len(value) == len(sample) and all(map(_covers, value, sample))
    return bool(value == sample)


def _is_call(api: str, word: Word) -> bool:
    """Whether a thing looks like a call that somebody has to run: its row says it, or says that
    the provider runs it.
    """
    sample = word.sample if isinstance(word.sample, dict) else {}
    if api == "openai_responses":
        return word.word.endswith("_call") and bool(sample.get("call_id"))
    if api == "gemini_generate_content":
        return word.word == "functionCall"
    if api == "openai_chat":
        return word.kind == "item" or word.word in ("tool_calls", "function_call")
    return {"id", "input"} <= sample.keys() or {"toolUseId", "input"} <= sample.keys()


def _claim_of_content(api: str, word: Word, row: Row) -> str:
    faults: list[str] = []
    for answer in WIRES[api].answers(word.kind, word.word, word.sample):
        fault = _fault_of_answer(api, word, row, answer)
        if not fault and row.treatment != "ignored":
            return ""
        if fault:
            faults.append(fault)
    return faults[0] if faults else ""


def _fault_of_answer(api: str, word: Word, row: Row, answer: Answer) -> str:
    turn = _adapter(api).response(answer.whole)
    if answer.events:
        streamed = _streamed(api, answer.events)
        if json.loads(streamed.native or b"0") != json.loads(turn.native or b"0"):
            return "a stream gives another turn than the whole answer"
        if [c.kind for c in streamed.calls] != [c.kind for c in turn.calls]:
            return "a stream gives other calls than the whole answer"
    body = _next_body(api, turn)
    sample = word.sample if word.kind != "block" or "type" in _dict(word.sample) else None
    sample = {word.word.rpartition(".")[2]: word.sample} if sample is None else sample
    goes_back = _holds(body, _without_id(sample))
    if row.treatment == "ignored":
        return "it goes back in the next request" if goes_back else ""
    is_call = _is_call(api, word) or row.reason.startswith("a call")
    if not all(call.answerable for call in turn.calls):
        return "a call of it can't be answered"
    if is_call and not turn.calls and "the provider runs it" not in row.reason:
        return "it looks like a call, and the round has no call of it (C8)"
    if row.treatment == "kept" and not goes_back:
        return "it is not in the next request"
    if row.treatment == "handled":
        beside = TextBlock("Yes.")  # stands in the answers beside what is tried
        read = [b for b in turn.blocks if not isinstance(b, OpaqueBlock) and b != beside]
        if not read and not turn.calls and word.word not in _READ_BESIDE:
            return "nothing of it is read"
    return ""


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _without_id(sample: Any) -> Any:
    """Ids of items may be made anew, or left out."""
    if not isinstance(sample, dict):
        return sample
    return {key: value for key, value in sample.items() if key not in ("id", "role", "status")}


def _claim_of_finish(api: str, word: Word, row: Row) -> str:
    for answer in WIRES[api].finished(word.word):
        if row.treatment == "refused":
            model = _adapter(api)
            try:
                model.response(answer.whole)
            except AdapterError:
                return ""
            try:
                _streamed(api, answer.events)
            except AdapterError:
                return ""
            return "no error says so"
        whole, streamed = _adapter(api).response(answer.whole), _streamed(api, answer.events)
        ends = {(turn.finish_reason, turn.cut) for turn in (whole, streamed)}
        if len(ends) > 1:
            return f"a stream ends otherwise than the whole answer: {ends}"
        if (whole.finish_reason == "unknown") != (row.treatment == "ignored"):
            return f"it is {whole.finish_reason!r}"
        named = word.word.rpartition(" ")[2]
        if whole.provider_finish_reason not in (named, None) and row.treatment == "handled":
            return "the provider's own word is not kept beside it"
    return ""


def _claim_of_field(api: str, word: Word, row: Row) -> str:
    wire = WIRES[api]
    if row.treatment == "refused":
        body = wire.with_field(word.word, word.sample)
        _streamed(api, [{"type": f"response.{body['status']}", "response": body}])
        return "no error says so"
    with_it: AssistantTurn = _adapter(api).response(wire.with_field(word.word, word.sample))
    usual: AssistantTurn = _adapter(api).response(wire.with_field("", None))
    try:
        without: AssistantTurn = _adapter(api).response(wire.with_field(word.word, None))
    except AdapterError:
        return "" if row.treatment == "handled" else "there is no answer without it"
    differs = with_it != without or usual != without
    stays = _without_kept(with_it) == _without_kept(without)
    if row.treatment == "ignored":
        return "the turn depends on it" if differs else ""
    if not differs:
        return "the turn is the same without it"
    if row.treatment == "kept" and not stays:
        return "the turn does more than to keep it"
    return ""


def _without_kept(turn: AssistantTurn) -> AssistantTurn:
    return replace(turn, residue=b"", input_transformations=())


# --- streams --------------------------------------------------------------------------------------


def _effect(api: str, before: list[dict[str, Any]], events: list[dict[str, Any]]) -> bool:
    """Whether events say or change anything behind others."""
    decoder, plain = _adapter(api).stream_decoder(), _adapter(api).stream_decoder()
    for event in before:
        decoder.feed(event)
        plain.feed(event)
    try:
        told = [delta for event in events for delta in decoder.feed(event)]
        if told or decoder.partial() != plain.partial():
            return True
        if _can_finish(decoder) != _can_finish(plain):
            return True
        after = WIRES[api].after
        return [_feed(decoder, after)] != [_feed(plain, after)]
    except AdapterError:
        return True


def _feed(decoder: Any, events: list[dict[str, Any]]) -> list[Any]:
    return [delta for event in events for delta in decoder.feed(event)]


def _can_finish(decoder: Any) -> bool:
    try:
        decoder.finish()
    except AdapterError:
        return False
    return True


def _effects(api: str, events: list[dict[str, Any]]) -> bool:
    return any(_effect(api, before, [event]) for before in WIRES[api].begun() for event in events)


def _claim_of_event(api: str, word: Word, row: Row) -> str:
    if api == "openai_chat":
        return _fault_of_effect(row, _chunk_differs(word))
    if api == "bedrock_converse":
        event = {word.word: word.sample}
    else:
        event = {**_dict(word.sample), "type": word.word}
        if "delta" in event and isinstance(event["delta"], str):
            event["item_id"] = "x"
        if word.word == "message_delta":
            event["delta"] = {"stop_reason": "end_turn"}
        if isinstance(response := event.get("response"), dict):
            event["response"] = {**response, "output": [], "error": None}
    return _fault_of_effect(row, _effects(api, [event]))


def _chunk_differs(word: Word) -> bool:
    """Whether the one event of Chat Completions says or gives more with a field than without."""
    choice = {"index": 0, "delta": {"content": "Yes."}, "finish_reason": "stop"}
    chunk = {"id": "c", "model": "m", "choices": [choice], "usage": {"completion_tokens": 1}}
    plain = {key: value for key, value in chunk.items() if key != word.word}
    with_it = {**plain, word.word: chunk.get(word.word, word.sample)}
    found: list[Any] = []
    for event in (plain, with_it):
        decoder = _adapter("openai_chat").stream_decoder()
        found.append((decoder.feed(event), decoder.partial()))
    return bool(found[0] != found[1])


def _claim_of_delta(api: str, word: Word, row: Row) -> str:
    return _fault_of_effect(row, _effects(api, WIRES[api].with_delta(word.word, word.sample)))


def _fault_of_effect(row: Row, has_effect: bool) -> str:
    if row.treatment == "ignored":
        return "it has an effect" if has_effect else ""
    return "" if has_effect else "it has no effect"


# --- requests -------------------------------------------------------------------------------------


def _asked() -> Transcript:
    transcript = Transcript()
    transcript.push_system("Be brief.")
    transcript.push_user("Go.")
    return transcript


def _full_body(api: str) -> dict[str, Any]:
    """Everything that the library writes into a request by itself."""
    output = OutputSpec("answer", _SCHEMA)
    common: dict[str, Any] = {"temperature": 0.5, "max_output_tokens": 9, "output": output}
    request = _adapter(api).request
    body: dict[str, Any] = {}
    # What is offered depends on the model: one of OpenAI's takes custom tools.
    models = {"openai_chat": "gpt-5", "openai_responses": "gpt-5"}
    for offer, stream in ((_OFFER, True), (None, True)):
        options = common if offer is not None else {}
        model = models.get(api)
        body |= request(_asked(), offer, stream=stream, model=model, **options)
    return {**body, "model": "m", "modelId": "m"}


def _claim_of_option(api: str, word: Word, row: Row) -> str:
    name = word.word
    if row.treatment == "handled":
        *outer, last = name.split(".")
        body: Any = _full_body(api)
        for key in outer:
            body = _dict(body).get(key)
        found = last in _dict(body) or (not outer and last in _dict(body.get("generationConfig")))
        return "" if found else "the library never writes it"
    value = True if word.sample is None else word.sample
    if row.treatment == "refused":
        try:
            _adapter(api).request(_asked(), extra=_nested(name, 2 if value == 1 else value))
        except (LutumpyError, TypeError, ValueError) as error:
            named = name.rpartition(".")[2] in str(error)
            return "" if named else "the error doesn't name it"
        return "no error says so"
    if row.treatment == "kept":
        given = _nested(name, value)
        body = _adapter(api).request(_asked(), extra=given)
        return "" if _covers(body, given) else "it is not sent as it was given"
    return ""


def _nested(name: str, value: Any) -> dict[str, Any]:
    """A parameter as a request has it: a dot in its name is a level."""
    for key in reversed(name.split(".")):
        value = {key: value}
    found: dict[str, Any] = value
    return found


def _claim_of_tool(api: str, word: Word, row: Row) -> str:
    if row.treatment == "handled":
        tools = json.dumps(_full_body(api))
        return "" if f'"{word.word}"' in tools else "the library never writes it"
    extra = WIRES[api].tools(word.word, word.sample)
    body = _adapter(api).request(_asked(), _OFFER, extra=extra)
    offered = _adapter(api).request(_asked(), _OFFER)
    sent = _holds(body, word.sample)
    beside = json.dumps(offered)[:-1].partition('"look"')[0] in json.dumps(body) or sent
    return "" if sent and beside else "it doesn't stand beside the offered tools"


def _claim_of_input(api: str, word: Word, row: Row) -> str:
    if row.treatment == "ignored":
        return ""
    for history in _histories(api, word):
        transcript = Transcript.from_messages(api, history)  # type: ignore[arg-type]
        if _adapter(api).messages(transcript) == history:
            return ""
    return "a history with it does not come back as it was"


def _histories(api: str, word: Word) -> Iterator[list[Any]]:
    user: Any = {"role": "user", "content": "Go."}
    sample, name = word.sample, word.word.rpartition(".")[2]
    if api == "openai_chat":
        if "role" in sample:
            yield [user, sample] if sample["role"] != "tool" else _chat_call(sample)
        yield [{"role": "user", "content": [sample]}]
        yield [user, {"role": "assistant", "content": [sample]}, user]
    elif api == "openai_responses":
        yield [user, sample]
        yield [{"role": "user", "content": [sample]}]
    elif api == "anthropic_messages":
        if sample["type"] == "tool_result":
            call = {"type": "tool_use", "id": "x", "name": "x", "input": {}}
            sample = {**sample, "tool_use_id": "x"}
            yield [user, {"role": "assistant", "content": [call]}, _with(sample)]
        yield [_with(sample)]
        yield [user, {"role": "system", "content": [sample]}]
    elif api == "bedrock_converse":
        block: Any = {name: sample}
        if word.word.startswith("toolResult."):
            use = {"toolUse": {"toolUseId": "x", "name": "x", "input": {}}}
            result = {"toolResult": {"toolUseId": "x", "content": [block]}}
            asked = {"role": "user", "content": [{"text": "Go."}]}
            yield [asked, {"role": "assistant", "content": [use]}, _with(result)]
        else:
            yield [{"role": "user", "content": [{"text": "Go."}, block]}]
    else:
        asked = {"role": "user", "parts": [{"text": "Go."}]}
        call = {"role": "model", "parts": [{"functionCall": {"name": "x", "args": {}}}]}
        response: Any = {"name": "x", "response": {"a": 1}}
        if word.word.startswith("functionResponse.parts."):
            response["parts"] = [{name: sample}]
        else:
            response[name] = "x" if name == "name" else sample
        if name == "id":
            call["parts"][0]["functionCall"]["id"] = sample
        yield [asked, call, {"role": "user", "parts": [{"functionResponse": response}]}]


def _with(block: Any) -> dict[str, Any]:
    return {"role": "user", "content": [block]}


def _chat_call(result: dict[str, Any]) -> list[Any]:
    call = {"id": "x", "type": "function", "function": {"name": "x", "arguments": "{}"}}
    asked = {"role": "user", "content": "Go."}
    return [
        asked,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {**result, "tool_call_id": "x"},
    ]


# --- errors ---------------------------------------------------------------------------------------


def _claim_of_error(api: str, word: Word, row: Row) -> str:
    if row.treatment == "ignored":
        return ""
    if isinstance(word.sample, type):
        error = word.sample.__new__(word.sample)
        if api == "gemini_generate_content":
            return "" if gemini_error(error) is not None else "it is not told in our words"
        if not is_sdk_error(error):
            return "it is not told in our words"
        return "" if adapter_error(error, api).provider == api else "it is not told in our words"
    body = WIRES[api].error(word.word)
    found: AdapterError | None
    if api == "bedrock_converse":
        ((name, event),) = body.items()
        found = event_error(name, event)
        if found is not None and found.status is None:
            return "its status is not known"
    else:
        found = error_body(body, api)
    if found is None or found.code != word.word:
        return "no error has it as its code"
    passes = row.reason.startswith("passes")
    return "" if found.retryable is passes else f"retryable is {found.retryable}"


_CLAIMS: dict[str, Callable[[str, Word, Row], str]] = {
    "block": _claim_of_content,
    "delta": _claim_of_delta,
    "error": _claim_of_error,
    "event": _claim_of_event,
    "field": _claim_of_field,
    "finish": _claim_of_finish,
    "input": _claim_of_input,
    "item": _claim_of_content,
    "option": _claim_of_option,
    "tool": _claim_of_tool,
}
