"""Cache points: where they go, how many there are, and that nothing else changes (rule A4)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from every_client import sync_model_at
from hypothesis import given
from hypothesis import strategies as st
from toolkit import WeatherTools as Tools

from lutumpy import NeedsTools, RawPart, Session, Transcript
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.bedrock.read import read_converse
from lutumpy.doctor import apply_repairs, propose_repairs
from lutumpy.rules.bedrock.law import check_request
from lutumpy.testing import Call, Reply, serve

POINT = {"cachePoint": {"type": "default"}}
HOUR = {"cachePoint": {"type": "default", "ttl": "1h"}}
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "us.amazon.nova-lite-v1:0"
API = "bedrock_converse"
PROFILE = "arn:aws:bedrock:us-east-1:1:application-inference-profile/x"
"""One of the user's own, whose name doesn't say which model is behind it."""


def started(system: str = "Be brief.") -> Session:
    session = Session()
    if system:
        session.push_system(system)
    session.push_user("Hello.")
    return session


def request(session: Session, tools: Any = Tools, **options: Any) -> dict[str, Any]:
    offer = None if tools is None else tools.offer()
    options = {"cache": "auto", "model": CLAUDE, **options}
    body = BedrockConverse.request(session.transcript, offer, **options)
    problems = check_request({**body, "modelId": options["model"]})
    assert [problem for problem in problems if problem.certainty == "refused"] == []
    return body


def points(body: dict[str, Any]) -> list[str]:
    found = []
    for place, blocks in (
        ("tools", body.get("toolConfig", {}).get("tools", [])),
        ("system", body.get("system", [])),
        *((f"messages.{n}", message["content"]) for n, message in enumerate(body["messages"])),
    ):
        found += [f"{place}.{index}" for index, block in enumerate(blocks) if "cachePoint" in block]
    return found


def without(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without(inner) for inner in value if inner != POINT]
    return value


def test_they_stand_at_the_end_of_what_later_requests_begin_with() -> None:
    session = started()
    body = request(session)
    assert points(body) == ["tools.1", "system.1", "messages.0.1"]
    assert without(body) == BedrockConverse.request(session.transcript, Tools.offer(), model=CLAUDE)
    session.push_ephemeral_user("It is noon.")
    body = request(session)
    said = [{"text": "Hello."}, POINT, {"text": "It is noon."}]
    assert body["messages"] == [{"role": "user", "content": said}]


def test_ephemeral_words_of_the_system_stand_behind_the_point() -> None:
    session = Session()
    session.push_system("Be brief.")
    session.push_ephemeral_system("It is noon.")
    session.push_user("Hello.")
    assert request(session, None)["system"] == [
        {"text": "Be brief."},
        POINT,
        {"text": "It is noon."},
    ]
    # What the user said behind something ephemeral will stand elsewhere in the next request.
    assert points(request(session, None)) == ["system.1"]


def test_results_are_covered() -> None:
    session = started()
    with serve([Reply(calls=[Call("weather", {"city": "Oslo"})])]) as server:
        with sync_model_at(API, server.url, cache="auto") as llm:
            outcome = session.text_turn(llm, tools=Tools).collect_sync()
        assert points(server.requests[0].body) == ["tools.1", "system.1", "messages.0.1"]
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [outcome.round.calls[0].complete("sunny")])
    assert points(request(session)) == ["tools.1", "system.1", "messages.2.1"]
    # Nova isn't known to take one there, and refuses one behind the tools.
    assert points(request(session, model=NOVA)) == ["system.1"]
    session.push_user("And now?")
    assert points(request(session, model=NOVA)) == ["system.1", "messages.2.2"]


@pytest.mark.parametrize(
    ("model", "places"),
    [
        (CLAUDE, ["tools.1", "system.1", "messages.0.1"]),
        (
            "arn:aws:bedrock:us-east-1:1:application-inference-profile/x",
            ["tools.1", "system.1", "messages.0.1"],
        ),
        ("anthropic.claude-3-5-haiku-20241022-v1:0", ["tools.1", "system.1", "messages.0.1"]),
        ("anthropic.claude-3-haiku-20240307-v1:0", []),
        ("anthropic.claude-3-5-sonnet-20240620-v1:0", []),
        (NOVA, ["system.1", "messages.0.1"]),
        ("amazon.titan-text-express-v1", []),
        ("meta.llama3-1-70b-instruct-v1:0", []),
    ],
)
def test_where_a_model_takes_them(model: str, places: list[str]) -> None:
    assert points(request(started(), model=model)) == places


def test_none_are_set_unless_asked_for() -> None:
    assert points(request(started(), cache=None)) == []
    with pytest.raises(ValueError, match="cache takes"):
        BedrockConverse(CLAUDE, cache="5m")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cache takes"):
        BedrockConverse.request(started().transcript, cache=True)


def test_those_of_the_user_count_and_the_longest_prefix_wins() -> None:
    session = started()
    body = request(session, extra={"system": [{"text": "x"}, POINT, {"text": "y"}, POINT]})
    assert points(body) == ["tools.1", "system.1", "system.3", "messages.0.1"]
    tools = [{"systemTool": {"name": "nova_grounding"}}, POINT]
    assert points(request(session, extra={"toolConfig": {"tools": tools}})) == [
        "tools.2",
        "system.1",
        "messages.0.1",
    ]
    said = Session()
    said.push_user(["a", RawPart(API, POINT), "b", RawPart(API, POINT), "c", RawPart(API, POINT)])
    said.push_user("d")
    body = request(said)
    assert points(body) == [f"messages.0.{k}" for k in (1, 3, 5, 7)]


@pytest.mark.parametrize("odd", [5, "x", {"text": "x"}, [5], [{"cachePoint": 1}]])
def test_odd_parameters_of_the_user_pass_as_they_are(odd: Any) -> None:
    transcript = started().transcript
    for name in ("system", "messages", "toolConfig"):
        body = BedrockConverse.request(transcript, cache="auto", extra={name: odd})
        assert body[name] == odd
    tools = BedrockConverse.request(transcript, cache="auto", extra={"toolConfig": {"tools": odd}})
    assert tools["messages"][0]["content"][-1] == POINT


def test_there_are_none_beside_one_that_lasts_an_hour() -> None:
    system = [{"text": "x"}, HOUR]
    assert points(request(started(), extra={"system": system})) == ["system.1"]


def test_what_was_read_keeps_its_own() -> None:
    read = read_converse(
        [{"role": "user", "content": [{"text": "x"}, POINT]}], [{"text": "s"}, POINT]
    )
    session = Session(read)
    assert points(request(session, None)) == ["system.1", "messages.0.1"]
    session.push_ephemeral_user("It is noon.")
    assert points(request(session, None)) == ["system.1", "messages.0.1"]


def test_a_cache_point_behind_the_tools_is_refused_by_nova() -> None:
    config = {"tools": [{"systemTool": {"name": "nova_grounding"}}, POINT]}
    sent = BedrockConverse.request(started().transcript)
    body = {**sent, "toolConfig": config, "modelId": NOVA}
    (problem,) = check_request(body)
    assert (problem.rule, problem.certainty) == ("converse.cache_point", "refused")
    assert problem.position == "toolConfig.tools.1"
    assert "extraneous key [cachePoint]" in problem.message
    assert check_request({**body, "modelId": CLAUDE}) == []
    repairs = propose_repairs(API, body["messages"])
    assert apply_repairs(body["messages"], repairs) == body["messages"]


ITEMS = st.lists(
    st.sampled_from(["user", "ephemeral", "system", "image", "point"]), min_size=1, max_size=6
)


@given(ITEMS, st.sampled_from([CLAUDE, NOVA, "x"]), st.booleans())
def test_nothing_else_changes_and_the_beginning_stays_A4(
    said: list[str], model: str, with_tools: bool
) -> None:
    transcript = Transcript()
    for kind in said:
        if kind == "system":
            transcript.push_system("s")
        elif kind == "point":
            transcript.push_user(["p", RawPart(API, POINT)])
        else:
            (transcript.push_ephemeral_user if kind == "ephemeral" else transcript.push_user)(kind)
    transcript.push_user("last")
    offer = Tools.offer() if with_tools else None
    plain = BedrockConverse.request(transcript, offer, model=model)
    marked = BedrockConverse.request(transcript, offer, model=model, cache="auto")
    assert without(copy.deepcopy(marked)) == without(plain)
    assert len(points(marked)) <= max(4, len(points(plain)))
    assert BedrockConverse.request(transcript, offer, model=model) == plain
