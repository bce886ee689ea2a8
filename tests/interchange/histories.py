"""Recorded histories, random ones, and what each API makes of a request: for the tests beside this
module.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from every_api import ADAPTERS, CHECKS
from hypothesis import strategies as st

from lutumpy import Transcript
from lutumpy.apis import serving
from lutumpy.errors import TranscriptError

Json = Any
SHAPES = {api: serving(api, "rules").SHAPE for api in ADAPTERS}
HISTORY = {api: shape.messages_key for api, shape in SHAPES.items()}
SYSTEM = {
    "openai_responses": "instructions",
    "anthropic_messages": "system",
    "gemini_generate_content": "systemInstruction",
    "bedrock_converse": "system",
}

FIXTURES = Path(__file__).parent.parent / "fixtures"
BESIDE = Path(__file__).parent.parent.parent.parent / "shared"
ROWS: list[dict[str, Json]] = [
    json.loads(line)
    for line in (FIXTURES / "histories.jsonl").read_text(encoding="utf-8").splitlines()
]


def name_of(row: dict[str, Json]) -> str:
    return f"{row['api']}-{row['source'].rpartition('/')[2]}"


def read(row: dict[str, Json]) -> Transcript:
    return Transcript.from_messages(row["api"], row["history"], system=row["system"])


def written(api: str, transcript: Transcript) -> tuple[Json, Json]:
    """System and history as the adapter gives them back, as JSON text: the order of keys counts."""
    system = ADAPTERS[api].system(transcript)
    return json.dumps(system), json.dumps(ADAPTERS[api].messages(transcript))


def as_text(system: Json, history: Json) -> tuple[Json, Json]:
    if isinstance(history, str):
        history = [{"role": "user", "content": history}]
    return json.dumps(system), json.dumps(history)


def body_of(api: str, transcript: Transcript) -> dict[str, Json] | None:
    """A request, with a question where there is nothing to answer; `None` where that is no help."""
    try:
        body: dict[str, Json] = ADAPTERS[api].request(transcript)
    except TranscriptError:
        asked = transcript.fork()
        try:
            asked.push_user("And?")
        except TranscriptError:  # a tool of the provider still runs
            return None
        body = ADAPTERS[api].request(asked)
    return {"model": "m", **body}


def refused(api: str, body: dict[str, Json]) -> list[str]:
    """What the API would certainly refuse in a request, by our rules and, where it lies beside, by
    its own description.
    """
    # Where the path names the model, the body has none.
    sent = {k: v for k, v in body.items() if k != "model" or not SHAPES[api].model_path}
    return sorted(broken_rules(api, body)) + described(api, sent)


def broken_rules(api: str, body: dict[str, Json]) -> set[str]:
    """The rules of the API that a request breaks for sure."""
    return {problem.rule for problem in CHECKS[api](body) if problem.certainty == "refused"}


def _described() -> Callable[[str, Json], list[str]]:
    found: dict[str, Callable[[str, Json], list[str]]] = {}
    for name in ("check_request", "check_more"):
        script = BESIDE / "tools" / f"{name}.py"
        if not script.exists() or importlib.util.find_spec("jsonschema") is None:
            return lambda api, body: []
        spec = importlib.util.spec_from_file_location(name, script)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found |= dict.fromkeys(module.ROOTS, module.violations)
    # Not every vendor publishes a schema of its requests.
    return lambda api, body: found[api](api, body) if api in found else []


described = _described()


# --- random histories -----------------------------------------------------------------------------

texts = st.sampled_from(["", " ", "Hello", "日本", '"quoted" [x', "x" * 60]) | st.text(max_size=8)
said = st.sampled_from(["Hello", "What is it?", "日本", "x" * 60])
arguments = st.sampled_from(
    ["{}", '{"a": 1}', '{"a": {"b": [1, 2.5, null]}}', "", "[1]", "not json"]
)
objects = st.sampled_from([{}, {"a": 1}, {"a": {"b": [1, 2.5, None]}}])
names = st.sampled_from(["search", "look", "a.b", "n" * 70])
# Ids come back in later turns, as some hosts make them do.
ids = st.sampled_from(["c1", "c2", "c3", "call_abc", "toolu_01", "functions.x:0"])
flags: st.SearchStrategy[dict[str, Json]] = st.sampled_from(
    [{}, {}, {}, {"name": "Ada"}, {"x_unknown": {"a": [1]}}]
)


@st.composite
def chat_histories(draw: st.DrawFn) -> tuple[Json, Json]:
    history: list[Json] = draw(
        st.lists(st.just({"role": "system", "content": "Be brief."}), max_size=1)
    )
    for _ in range(draw(st.integers(1, 4))):
        for _ in range(draw(st.integers(1, 2))):
            content = draw(said | st.lists(st.sampled_from(CHAT_PARTS), min_size=1, max_size=3))
            history.append(
                {
                    "role": draw(st.sampled_from(["user", "user", "user", "system"])),
                    "content": content,
                }
            )
            if history[-1]["role"] == "system":
                history[-1]["content"] = "Change of plan."
            history[-1].update(draw(flags))
        for _ in range(draw(st.integers(0, 2))):
            history += draw(chat_turn())
    return None, history


CHAT_PARTS: list[Json] = [
    {"type": "text", "text": "see"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw==", "detail": "low"}},
    {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    {
        "type": "file",
        "file": {"file_data": "data:application/pdf;base64,JVBERg==", "filename": "a.pdf"},
    },
    {"type": "file", "file": {"file_id": "file-abc"}},
    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
]


@st.composite
def chat_turn(draw: st.DrawFn) -> list[Json]:
    message: dict[str, Json] = {"role": "assistant"}
    calls = draw(st.lists(ids, max_size=3, unique=True))
    content = draw(
        st.sampled_from([None, "", "Let me see.", [{"type": "text", "text": "Let me see."}]])
    )
    if not calls:
        content = content or "Done."
    if content is not None or draw(st.booleans()):
        message["content"] = content
    message.update(
        draw(
            st.sampled_from(
                [{}, {"refusal": None}, {"reasoning_content": "hm"}, {"x_unknown": [None]}]
            )
        )
    )
    if not calls:
        return [message]
    kinds = [draw(st.sampled_from(["function", "function", "custom"])) for _ in calls]
    message["tool_calls"] = [
        {
            "id": i,
            "type": k,
            k: {"name": draw(names), "arguments" if k == "function" else "input": draw(arguments)},
        }
        for i, k in zip(calls, kinds, strict=True)
    ]
    content_of = texts | st.just(
        [{"type": "text", "text": "found"}, {"type": "text", "text": "more"}]
    )
    results = [
        {"role": "tool", "tool_call_id": i, "content": draw(content_of), **draw(flags)}
        for i in calls
    ]
    return [message, *draw(st.permutations(results))]


@st.composite
def responses_histories(draw: st.DrawFn) -> tuple[Json, Json]:
    history: list[Json] = []
    number = iter(range(1000))
    for _ in range(draw(st.integers(1, 4))):
        content = draw(said | st.lists(st.sampled_from(RESPONSES_PARTS), min_size=1, max_size=3))
        message = {"role": "user", "content": content}
        history.append({"type": "message", **message} if draw(st.booleans()) else message)
        for _ in range(draw(st.integers(0, 3))):
            history += draw(responses_turn(next(number)))
    # An id names one call in the whole input.
    return draw(st.sampled_from([None, None, "Be brief."])), history


RESPONSES_PARTS: list[Json] = [
    {"type": "input_text", "text": "see"},
    {"type": "input_image", "image_url": "data:image/png;base64,iVBORw==", "detail": "auto"},
    {"type": "input_image", "file_id": "file-abc", "detail": "low"},
    {"type": "input_file", "file_url": "https://example.com/a.pdf"},
    {
        "type": "input_file",
        "filename": "a.pdf",
        "file_data": "data:application/pdf;base64,JVBERg==",
    },
]


@st.composite
def responses_turn(draw: st.DrawFn, number: int) -> list[Json]:
    turn: list[Json] = []
    if draw(st.booleans()):
        turn.append(
            {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "gAAA"}
        )
        turn.append(
            {
                "type": "web_search_call",
                "id": f"ws_{number}",
                "status": "completed",
                "action": {"type": "x"},
            }
        )
    if draw(st.booleans()):
        part = {"type": "output_text", "text": "Let me see.", "annotations": []}
        turn.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "content": [part],
                "status": "completed",
            }
        )
    outputs: list[Json] = []
    for k in range(draw(st.integers(0, 3))):
        call_id = f"call_{number}_{k}"
        kind = draw(
            st.sampled_from(["function", "function", "custom", "shell", "local_shell", "computer"])
        )
        turn.append(responses_call(kind, call_id, draw(names), draw(arguments)))
        outputs.append(responses_output(kind, call_id, draw(texts)))
    if not turn:
        return [{"role": "assistant", "content": "Done."}]
    # The wire asks only that an output stands after its call.
    between: list[Json] = (
        [{"role": "user", "content": "Hurry."}] if outputs and draw(st.booleans()) else []
    )
    rest = draw(st.permutations([*outputs, *between]))
    if len(outputs) > 1 and draw(st.booleans()):
        first = next(
            k for k, item in enumerate(turn) if item.get("call_id") == outputs[0]["call_id"]
        )
        turn.insert(first + 1, outputs[0])
        rest = [item for item in rest if item is not outputs[0]]
    return [*turn, *rest]


def responses_call(kind: str, call_id: str, name: str, text: str) -> Json:
    if kind == "function":
        return {"type": "function_call", "call_id": call_id, "name": name, "arguments": text}
    if kind == "custom":
        return {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": text}
    action: Json = (
        {"type": "exec", "command": ["ls"], "env": {}}
        if kind == "local_shell"
        else {"commands": ["ls"]}
    )
    if kind == "computer":
        action = {"type": "wait"}
    item = {"type": f"{kind}_call", "call_id": call_id, "action": action, "status": "completed"}
    if kind == "local_shell":
        item["id"] = f"lsh_{call_id}"
    if kind == "computer":
        item |= {"id": f"cu_{call_id}", "pending_safety_checks": []}
    return item


def responses_output(kind: str, call_id: str, text: str) -> Json:
    if kind in ("function", "custom"):
        word = "function" if kind == "function" else "custom_tool"
        return {"type": f"{word}_call_output", "call_id": call_id, "output": text}
    if kind == "local_shell":
        return {
            "type": "local_shell_call_output",
            "id": f"o_{call_id}",
            "call_id": call_id,
            "output": text,
        }
    if kind == "computer":
        shot = {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw=="}
        return {"type": "computer_call_output", "call_id": call_id, "output": shot}
    said = {"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}
    return {"type": "shell_call_output", "call_id": call_id, "output": [said]}


@st.composite
def anthropic_histories(draw: st.DrawFn) -> tuple[Json, Json]:
    history: list[Json] = []
    for number in range(draw(st.integers(1, 4))):
        for _ in range(draw(st.integers(1, 2))):
            content = draw(
                said | st.lists(st.sampled_from(ANTHROPIC_BLOCKS), min_size=1, max_size=3)
            )
            history.append({"role": "user", "content": content})
        history += draw(anthropic_turn(number)) if draw(st.booleans()) else []
    system = draw(
        st.sampled_from(
            [
                None,
                "Be brief.",
                [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            ]
        )
    )
    return system, history


ANTHROPIC_BLOCKS: list[Json] = [
    {"type": "text", "text": "see"},
    {"type": "text", "text": "see", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
    {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "text"},
        "title": "a.txt",
    },
    {
        "type": "document",
        "source": {"type": "url", "url": "https://example.com/a.pdf"},
        "citations": {"enabled": True},
    },
    {
        "type": "search_result",
        "title": "T",
        "source": "S",
        "content": [{"type": "text", "text": "found"}],
    },
]


@st.composite
def anthropic_turn(draw: st.DrawFn, number: int) -> list[Json]:
    content: list[Json] = []
    if draw(st.booleans()):
        content.append({"type": "thinking", "thinking": "hm", "signature": f"c2ln{number}"})
    if draw(st.booleans()):
        content += [
            {
                "type": "server_tool_use",
                "id": f"srvtoolu_{number}",
                "name": "web_search",
                "input": {"query": "q"},
            },
            {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{number}", "content": []},
        ]
    if draw(st.booleans()) or not content:
        content.append({"type": "text", "text": "Let me see."})
    calls = [i for i in draw(st.lists(ids, max_size=3, unique=True)) if "." not in i]
    if content[-1]["type"] == "thinking" and not calls:
        content.append({"type": "text", "text": "Let me see."})
    uses = [
        {"type": "tool_use", "id": i, "name": draw(names), "input": draw(objects)} for i in calls
    ]
    if not calls:
        return [{"role": "assistant", "content": draw(st.sampled_from([content, "Done."]))}]
    results = draw(st.permutations([draw(anthropic_result(i)) for i in calls]))
    after = draw(st.sampled_from([[], [], [{"type": "text", "text": "Hurry."}]]))
    made = [{"role": "assistant", "content": content + uses}]
    answered = [{"role": "user", "content": [*results, *after]}]
    if draw(st.booleans()):  # neighbours of one role are one message for this API
        made = [
            {"role": "assistant", "content": [*content, uses[0]]},
            {"role": "assistant", "content": uses[1:]},
        ]
        made = [message for message in made if message["content"]]
    if draw(st.booleans()) and len(results) > 1:
        answered = [
            {"role": "user", "content": results[:1]},
            {"role": "user", "content": [*results[1:], *after]},
        ]
    return [*made, *answered]


@st.composite
def anthropic_result(draw: st.DrawFn, call_id: str) -> Json:
    block: dict[str, Json] = {"type": "tool_result", "tool_use_id": call_id}
    kind = draw(st.sampled_from(["none", "text", "blocks", "image", "error"]))
    if kind in ("text", "error"):
        block["content"] = "found"
    if kind in ("blocks", "image"):
        block["content"] = [
            {"type": "text", "text": "found"},
            *([ANTHROPIC_BLOCKS[2]] if kind == "image" else []),
        ]
    if kind == "error":
        block["is_error"] = True
    return block


@st.composite
def gemini_histories(draw: st.DrawFn) -> tuple[Json, Json]:
    history: list[Json] = []
    for number in range(draw(st.integers(1, 4))):
        for _ in range(draw(st.integers(1, 2))):
            parts = draw(st.lists(st.sampled_from(GEMINI_PARTS), min_size=1, max_size=3))
            history.append({"role": "user", "parts": parts})
        history += draw(gemini_turn(number)) if draw(st.booleans()) else []
    system = draw(st.sampled_from([None, {"parts": [{"text": "Be brief."}]}]))
    return system, history


GEMINI_PARTS: list[Json] = [
    {"text": "see"},
    {"text": "日本"},
    {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}},
    {"inline_data": {"mime_type": "application/pdf", "data": "JVBERg=="}},
    {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.com/a.mp4"}},
]


@st.composite
def gemini_turn(draw: st.DrawFn, number: int) -> list[Json]:
    parts: list[Json] = []
    if draw(st.booleans()):
        parts.append({"text": "hm", "thought": True})
    if draw(st.booleans()):
        parts += [
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        ]
    if draw(st.booleans()) or not parts:
        parts.append({"text": "Let me see.", **draw(st.sampled_from([{}, SEALED]))})
    with_ids = draw(st.booleans())
    calls: list[Json] = []
    results: list[Json] = []
    for k in range(draw(st.integers(0, 3))):
        name = draw(st.sampled_from(["search", "look", "a.b"]))
        given = {"id": f"c{number}{k}"} if with_ids else {}
        call = {"functionCall": {**given, "name": name, "args": draw(objects)}}
        calls.append({**call, **SEALED} if not calls else call)
        response = draw(st.sampled_from([{"result": "found"}, {"error": "none"}, {"a": [1]}, {}]))
        results.append({"functionResponse": {**given, "name": name, "response": response}})
    turn = [{"role": "model", "parts": [*parts, *calls]}]
    if with_ids:
        results = draw(st.permutations(results))
    return [*turn, {"role": "user", "parts": results}] if calls else turn


SEALED = {"thoughtSignature": "c2VhbA=="}


@st.composite
def bedrock_histories(draw: st.DrawFn) -> tuple[Json, Json]:
    history: list[Json] = []
    for number in range(draw(st.integers(1, 4))):
        if history and history[-1]["role"] == "user":
            history.append({"role": "assistant", "content": [{"text": "Yes."}]})
        content = draw(st.lists(st.sampled_from(BEDROCK_BLOCKS), min_size=1, max_size=3))
        history.append({"role": "user", "content": [{"text": "See:"}, *content]})
        history += draw(bedrock_turn(number)) if draw(st.booleans()) else []
    system = draw(
        st.sampled_from([None, [{"text": "Be brief."}], [{"text": "Be brief."}, BEDROCK_POINT]])
    )
    return system, history


BEDROCK_POINT = {"cachePoint": {"type": "default"}}
BEDROCK_BLOCKS: list[Json] = [
    {"text": "see"},
    {"image": {"format": "png", "source": {"bytes": "iVBORw=="}}},
    {"document": {"format": "pdf", "name": "a paper", "source": {"bytes": "JVBERg=="}}},
    {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://bucket/a.png"}}}},
    {"guardContent": {"text": {"text": "guarded"}}},
    BEDROCK_POINT,
]


@st.composite
def bedrock_turn(draw: st.DrawFn, number: int) -> list[Json]:
    content: list[Json] = []
    if draw(st.booleans()):
        told = {"text": "hm", "signature": f"c2ln{number}"}
        content.append({"reasoningContent": {"reasoningText": told}})
    if draw(st.booleans()) or not content:
        content.append({"text": "Let me see."})
    calls = [
        {"toolUseId": f"tooluse_{number}{k}", "name": name, "input": draw(objects)}
        for k, name in enumerate(
            draw(st.lists(st.sampled_from(["search", "look", "n" * 64]), max_size=3))
        )
    ]
    if not calls:
        return [{"role": "assistant", "content": content}]
    results = [{"toolResult": draw(bedrock_result(call["toolUseId"]))} for call in calls]
    after = draw(st.sampled_from([[], [], [{"text": "Hurry."}]]))
    return [
        {"role": "assistant", "content": [*content, *({"toolUse": call} for call in calls)]},
        {"role": "user", "content": [*draw(st.permutations(results)), *after]},
    ]


@st.composite
def bedrock_result(draw: st.DrawFn, call_id: str) -> Json:
    content = draw(
        st.sampled_from(
            [
                [{"text": "found"}],
                [{"json": {"found": [1]}}],
                [{"text": "found"}, BEDROCK_BLOCKS[1]],
                [],
            ]
        )
    )
    failed: dict[str, Json] = {"content": [{"text": "none"}], "status": "error"}
    return {"toolUseId": call_id, **draw(st.sampled_from([{"content": content}, failed]))}


HISTORIES: dict[str, st.SearchStrategy[tuple[Json, Json]]] = {
    "openai_chat": chat_histories(),
    "openai_responses": responses_histories(),
    "anthropic_messages": anthropic_histories(),
    "gemini_generate_content": gemini_histories(),
    "bedrock_converse": bedrock_histories(),
}
