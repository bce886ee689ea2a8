"""A package that adds an API changes nothing about what the built-in ones read, check and mend."""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import like_chat_api
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "doctor"))

from composed import APIS, FIXTURES, History, composed, recorded
from mutations import MUTATIONS
from profiles import examples

from lutumpy import Session, Transcript, TranscriptError
from lutumpy.apis import add_api, remove_api
from lutumpy.cli.documents import DocumentError, Place, open_document
from lutumpy.doctor import apply_repairs, check_messages, propose_repairs
from lutumpy.doctor.writing import INTERRUPTED, Call, Piece
from lutumpy.page.readers import read_messages
from lutumpy.page.usage import usage_of

ADDED = like_chat_api.ROW.name
HERE = Place("-")
CALL = {"id": "call_1", "type": "function", "function": {"name": "pay", "arguments": '{"sum": 5}'}}
CHAT: History = [
    {"role": "user", "content": "Pay five."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "paid"},
]
OF_ITS_OWN: History = [
    {"role": "user", "content": "Pay five."},
    {"role": "assistant", "content": "Paid.", "liked": True},
]


@contextmanager
def installed_api() -> Iterator[None]:
    add_api(like_chat_api.ROW)
    try:
        yield
    finally:
        remove_api(ADDED)


@pytest.fixture
def added() -> Iterator[str]:
    with installed_api():
        yield ADDED


def damaged(rng: random.Random, api: str, recordings: History) -> History:
    """A history of an API, some of it spelled as others do, broken in a few places."""
    history: History = (
        copy.deepcopy(rng.choice(recordings)) if rng.random() < 0.3 else composed(api, rng)
    )
    if rng.random() < 0.5:
        other = composed(rng.choice(APIS), rng, rounds=1)
        at = rng.choice([0, len(history)])
        history[at:at] = other
    if rng.random() < 0.5:
        with suppress(KeyError, TypeError, IndexError, AttributeError):
            MUTATIONS[api][rng.choice(sorted(MUTATIONS[api]))](rng, history)
    for _ in range(rng.randint(0, 3)):
        _damage(rng, history)
    return history


KEYS = (
    "role type content tool_calls tool_call_id tool_name liked id call_id function parts text name"
).split()


def _damage(rng: random.Random, history: History) -> None:
    node: Any = history
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(node[key], (dict, list)) and rng.random() < 0.7:
            node = node[key]
        elif rng.random() < 0.4:
            del node[key]
            return
        elif isinstance(node, dict) and rng.random() < 0.4:
            node[rng.choice(KEYS)] = node.pop(key)
            return
        else:
            node[key] = rng.choice([None, "", 5, [], {}, "tool", copy.deepcopy(node[key])])
            return


def outcome(read: Callable[[], Any]) -> Any:
    """What something gives, or the error that it raises."""
    try:
        return read()
    except (TranscriptError, DocumentError) as error:
        return f"{type(error).__name__}: {error}"


def readings(api: str, history: History, *, thorough: bool) -> list[Any]:
    """Everything that is made of a history of an API."""
    made = [check_messages(api, history), propose_repairs(api, history, thorough=thorough)]
    if "liked" in json.dumps(history):  # which the added API alone has
        return made
    return [
        *made,
        outcome(lambda: open_document(history, HERE).api),
        outcome(lambda: open_document({"messages": history, "model": "m"}, HERE).api),
        outcome(lambda: open_document({"request": {"contents": history}}, HERE).api),
    ]


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
def test_it_changes_nothing_of_what_is_made_of_histories_of_the_built_in_apis(api: str) -> None:
    rng = random.Random(f"like {api}")
    recordings = [history for history in recorded(api) if isinstance(history, list)]
    for _ in range(examples(240)):
        history, thorough = damaged(rng, api, recordings), rng.random() < 0.5
        before = readings(api, history, thorough=thorough)
        with installed_api():
            assert readings(api, history, thorough=thorough) == before, history


@pytest.mark.parametrize("api", APIS)
def test_recorded_histories_are_read_and_recognised_as_without_it(api: str) -> None:
    for history in recorded(api)[:30]:

        def read(messages: Any = history) -> list[Any]:
            return [
                outcome(lambda: Session(Transcript.from_messages(api, messages)).dump()),
                outcome(lambda: open_document(messages, HERE).api),
                outcome(lambda: repr(read_messages(api, messages, None, 500).steps)),
            ]

        before = read()
        with installed_api():
            assert read() == before


def test_recorded_exchanges_are_recognised_as_without_it() -> None:
    for name in ("openai_chat", "openai_responses", "anthropic_messages", "bedrock_converse"):
        rows = [json.loads(line) for line in (FIXTURES / f"{name}.jsonl").read_text().splitlines()]
        for row in rows:

            def read(row: Any = row) -> list[Any]:
                sent = row.get("request", row)
                found = [outcome(lambda: open_document(row, HERE).api)]
                found.append(outcome(lambda: open_document(sent, HERE).api))
                answer = row.get("response")
                usage = answer.get("usage") if isinstance(answer, dict) else None
                return [*found, usage_of(usage)]

            before = read()
            with installed_api():
                assert read() == before


def test_one_call_stays_one_call_and_keeps_its_result(added: str) -> None:
    for api in APIS:
        mended = apply_repairs(CHAT, propose_repairs(api, CHAT))
        text = json.dumps(mended)
        assert text.count('"pay"') == (2 if api == "gemini_generate_content" else 1)
        assert "paid" in text
        assert INTERRUPTED not in text
        assert "like_" not in text


def test_its_own_history_is_recognised_by_what_it_alone_has(added: str) -> None:
    assert open_document(OF_ITS_OWN, HERE).api == added
    assert open_document({"model": "m", "messages": OF_ITS_OWN}, HERE).api == added
    body = {"model": "m", "messages": CHAT[:1], "likes": 5}
    assert open_document(body, HERE).api == added
    assert open_document(CHAT, HERE, added).api == added
    url = {"url": "https://api.like-chat.example/v1/chat/completions"}
    assert open_document({**url, "body": body}, HERE).api == added


def test_what_speaks_for_two_names_both_and_says_how_to_choose(added: str) -> None:
    both = [*CHAT, OF_ITS_OWN[1], {"role": "assistant", "content": 5}]
    with pytest.raises(DocumentError, match=f"openai_chat and {added}: say which one with --api"):
        open_document([*both, {**CHAT[1], "liked": False}], HERE)


def test_a_dump_without_entries_of_its_own_is_loaded(added: str) -> None:
    session = Session(Transcript.from_messages("openai_chat", CHAT))
    assert Session.load(session.dump()).dump() == session.dump()


def test_its_calls_are_read_where_no_built_in_spelling_sees_any(
    added: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_asked(self: Any, message: Any, number: int, read_part: Any) -> list[Piece]:
        asked = message.get("asked")
        return [Call("a", asked, {})] if isinstance(asked, str) else []

    monkeypatch.setattr(like_chat_api.LikeChatSpelling, "read_beside_content", read_asked)
    history = [CHAT[0], {"role": "assistant", "content": None, "asked": "pay"}]
    mended = apply_repairs(history, propose_repairs("openai_chat", history))
    function = {"name": "pay", "arguments": "{}"}
    assert mended[1]["tool_calls"] == [{"id": "a", "type": "function", "function": function}]


@pytest.mark.pure
@pytest.mark.slow
def test_an_installed_package_leaves_a_chat_history_to_chat(tmp_path: Path) -> None:
    info = tmp_path / "like_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: like-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lutumpy.apis]\nlike_chat = like_chat_api:ROW\n")
    (tmp_path / "like_chat_api.py").write_text(Path(like_chat_api.__file__).read_text())
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-m", "lutumpy", "check", "-", "--json"],
        input=json.dumps(CHAT),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), root])},
        timeout=120,
    )
    first = json.loads(done.stdout.splitlines()[0])
    assert (done.returncode, first["api"]) == (0, "openai_chat"), done.stderr
