"""A dump that was damaged by hand is refused, with what is wrong and where (rule R4)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from lutumpy import (
    FilePart,
    ImagePart,
    Session,
    TextPart,
    Toolset,
    TranscriptError,
    histories,
    tool,
    tool_fn,
)
from lutumpy.adapters.writing import sendable
from lutumpy.apis import api_names
from lutumpy.errors import Problem
from lutumpy.testing import Call, Reply, ScriptedModel


@tool_fn
def look(place: str) -> str:
    """Look somewhere."""
    return place


class Tools(Toolset):
    look = tool(look)


def dump() -> dict[str, Any]:
    session = Session()
    session.push_user([TextPart("Look."), ImagePart(data=b"\x89PNG", media_type="image/png")])
    calls = [Call("look", {"place": "a"}), Call("look", {"place": "b"})]
    llm = ScriptedModel([Reply(calls=calls)])
    round = session.text_turn(llm, tools=Tools).collect_sync().round  # type: ignore[union-attr]
    round.commit(session, [call.complete("seen") for call in round.calls])
    return session.dump()


def set_at(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    data = copy.deepcopy(data)
    node = data
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    return data


TURN = ("items", 1)
CALL = (*TURN, "blocks", 0)
NO_ENTRY = {"api": "openai_chat", "entries": [], "system": True}


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("items", 0, "role"), "system", "a system message takes text only"),
        (("items", 0, "parts", 1, "media_type"), "", "media_type"),
        (
            ("items", 0, "verbatim"),
            {"api": "openai_chat", "entries": [], "system": True},
            "0 values",
        ),
        ((*TURN, "results_only"), True, "results_only is set"),
        ((*TURN, "usage", "input_tokens"), -1, "usage.input_tokens is -1"),
        ((*TURN, "usage", "input_tokens"), 2**63, "usage.input_tokens is too large"),
        ((*TURN, "native"), {}, "native is empty"),
        ((*CALL, "position"), 1, "two calls are at one place"),
        ((*CALL, "position"), -2, "has the position -2"),
        ((*CALL, "id"), "call_other", "isn't the one in the turn's native form"),
        ((*CALL, "block"), "sound", "unknown block 'sound'"),
        (("items", 0, "parts", 1, "part"), "sound", "unknown part 'sound'"),
    ],
)
def test_a_damaged_dump_says_what_is_wrong(path: Any, value: Any, reason: str) -> None:
    good = dump()
    assert Session.load(good).dump() == good
    with pytest.raises(TranscriptError, match=reason) as caught:
        Session.load(set_at(good, path, value))
    assert "nothing was loaded" in str(caught.value)


def test_an_id_that_cannot_be_sent_is_refused() -> None:
    data = dump()
    data["items"][1]["blocks"][0]["id"] = "call_\ud800"
    data["items"][1]["native"]["tool_calls"][0]["id"] = "call_\ud800"
    with pytest.raises(TranscriptError, match="can't be sent"):
        Session.load(data)


@pytest.mark.parametrize(
    ("url", "data"),
    [
        ("data:image/png;base64,iVBO", b"\x89PN"),
        ("data:image/png;base64,", None),
        ("data:image/png;base64,###", None),
        ("data:;base64,iVBO", None),
        ("data:image/png,iVBO", None),
        ("ftp://example.org/a.png", None),
    ],
)
def test_an_address_is_sent_if_an_api_might_take_it(url: str, data: bytes | None) -> None:
    for part in (ImagePart(url=url), FilePart(url=url)):
        found = sendable(part)
        assert (None if found is None else found.data) == data


def test_an_empty_part_is_not_sent() -> None:
    assert sendable(ImagePart(data=b"", media_type="image/png")) is None
    kept = ImagePart(url="https://example.org/a.png")
    assert sendable(kept) is kept


def edited() -> dict[str, Any]:
    """A dump that isn't as it was written, and so is checked as a whole."""
    return set_at(dump(), ("items", 0, "parts", 0, "text"), "Look again.")


def test_a_dump_that_an_api_refuses_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = edited()
    problem = Problem("chat.role", "messages[0]", "no such role", "refused")
    monkeypatch.setattr(histories, "check_messages", lambda api, *_, **options: [problem])
    with pytest.raises(TranscriptError, match=r"the dump is invalid: .*no such role"):
        Session.load(data)
    # What was refused of it when it was saved is not held against it.
    known = [[api, "chat.role"] for api in api_names()]
    assert len(Session.load({**data, "refused": known}).transcript) == len(data["items"])


def test_a_dump_of_an_earlier_release_is_not_judged_by_the_api_that_wrote_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It doesn't say what was refused when it was saved."""
    data = edited()
    writers = {item["api"] for item in data["items"] if "api" in item}
    problem = Problem("any.rule", "messages[0]", "no", "refused")
    monkeypatch.setattr(
        histories, "check_messages", lambda api, *_, **options: [problem] * (api in writers)
    )
    with pytest.raises(TranscriptError, match=r"any\.rule"):
        Session.load(data)
    del data["refused"]
    assert len(Session.load(data).transcript) == len(data["items"])


def test_an_edited_dump_of_instructions_alone_is_loaded() -> None:
    session = Session()
    session.push_system("Be brief.")
    data = set_at(session.dump(), ("items", 0, "parts", 0, "text"), "Be very brief.")
    assert len(Session.load(data).transcript) == 1


def test_a_dump_of_which_no_request_can_be_made_is_not_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = edited()

    def fail(*given: Any, **options: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(histories, "check_messages", fail)
    with pytest.raises(TranscriptError, match=r"no request of openai_chat .*RuntimeError: broken"):
        Session.load(data)
