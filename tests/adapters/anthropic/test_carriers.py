"""How Messages spells a change between turns, by host and model, and what it does where there are
no words for one (rules PB3 to PB6, PB13, PB14, PB20).
"""

from __future__ import annotations

from typing import Any

import pytest
from every_api import CHECKS

from lutumpy import (
    Finished,
    NeedsTools,
    PrefixChangedError,
    Session,
    ToolAvailability,
    Toolset,
    Transcript,
    tool,
    tool_fn,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import HostFacts, facts_of
from lutumpy.doctor import check_messages
from lutumpy.models import PrefixReport

FABLE = "claude-fable-5-1"
VENDOR = facts_of("api.anthropic.com")
BEDROCK = facts_of("bedrock-runtime.us-east-1.amazonaws.com")
PROXY = facts_of("localhost:4000")
Json = dict[str, Any]


@tool_fn
def look(key: str) -> str:
    """Look something up."""
    return key


@tool_fn
def send(text: str) -> str:
    """Send a text."""
    return text


class Tools(Toolset):
    look, send = tool(look), tool(send, off=True)


ONLY_LOOK = ToolAvailability.only(Tools.look)
BOTH = ToolAvailability.all()
ONLY_SEND = ToolAvailability.only(Tools.send)


class Conversation:
    """A session whose requests are answered by hand."""

    def __init__(self, host: HostFacts = VENDOR, model: str = FABLE) -> None:
        self.session = Session()
        self.session.push_user("go")
        self.host, self.model = host, model

    def ask(
        self, answer: list[Json] | None = None, stop: str = "end_turn", **options: Any
    ) -> tuple[Json, PrefixReport]:
        """The body of a request, and what its answer reports."""
        names = ("effort", "extra", "on_prefix_change", "model", "host", "cache")
        asked = {name: options.pop(name) for name in names if name in options}
        further = options.pop("further", {})
        offer = Tools.offer(**options)
        known = {"model": self.model, "host": self.host, **asked}
        body = AnthropicMessages.request(self.session.transcript, offer, **known)
        assert CHECKS["anthropic_messages"]({**body, "model": known["model"]}) == []
        number = len(self.session.turns())
        content = answer if answer is not None else [{"type": "text", "text": f"{number}"}]
        reply = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": known["model"],
            "content": content,
            "stop_reason": stop,
            "usage": {"input_tokens": 1, "output_tokens": 1},
            **further,
        }
        outcome = offer.read(AnthropicMessages.response(reply), self.session)
        if isinstance(outcome, NeedsTools):
            found = outcome.round
            found.commit(self.session, [call.complete("done") for call in found.calls])
            return body, found.prefix
        assert isinstance(outcome, Finished)
        if stop == "end_turn":
            self.session.push_user("go on")
        return body, outcome.result.prefix


def thinking(signature: str) -> list[Json]:
    return [
        {"type": "thinking", "thinking": "hm", "signature": signature},
        {"type": "text", "text": "Yes."},
    ]


def said(body: Json) -> list[Any]:
    """What the messages of the system's say, in order."""
    found: list[Any] = []
    for message in body["messages"]:
        if message["role"] == "system":
            blocks = message["content"]
            found += [blocks] if isinstance(blocks, str) else [spell(block) for block in blocks]
            if "output_config" in message:
                found.append(message["output_config"])
    return found


def spell(block: Json) -> str:
    if block["type"] == "text":
        return str(block["text"])
    changed = block["tool"]
    name = changed.get("name") or changed["definition"]["name"]
    return f"{block['type']} {changed['type']} {name}"


def test_tools_change_by_reference_at_the_clouds_PB6() -> None:
    talk = Conversation(BEDROCK)
    first, _ = talk.ask(available=ONLY_LOOK)
    assert [entry["name"] for entry in first["tools"]] == ["look"]
    second, report = talk.ask(available=BOTH)
    # A new tool stands behind the others, deferred, so that a message can refer to it.
    assert second["tools"][:1] == first["tools"]
    assert second["tools"][1]["name"] == "send"
    assert second["tools"][1]["defer_loading"] is True
    assert said(second) == ["tool_addition tool_reference send"]
    assert report.appended == ("tool_addition send",)
    third, _ = talk.ask(available=ONLY_SEND)
    assert third["tools"] == second["tools"]
    assert said(third)[1:] == ["tool_removal tool_reference look"]
    fourth, _ = talk.ask(available=BOTH, describe={Tools.look: "Look in the new index."})
    # A text stands for a new description.
    assert said(fourth)[2:] == [
        "tool_addition tool_reference look",
        "The tool `look` from here on: Look in the new index.",
    ]
    fifth, report = talk.ask(available=BOTH, describe={Tools.look: "And again."})
    assert said(fifth)[4:] == ["The tool `look` from here on: And again."]
    assert report.cache == "begins"


def test_another_schema_has_no_words_by_reference_PB6() -> None:
    talk = Conversation(BEDROCK)
    talk.ask(thinking("a"), available=BOTH)
    talk.ask(available=ONLY_LOOK)
    settings = {Tools.look: {"anthropic_messages": {"eager_input_streaming": True}}}
    body, report = talk.ask(available=ONLY_LOOK, provider=settings)
    assert said(body) == []
    assert [entry["name"] for entry in body["tools"]] == ["look"]
    assert (report.cache, report.changed) == ("restarts", ("tools",))
    assert [lost.turn for lost in report.dropped] == [0]
    # The next request goes on from there.
    again, report = talk.ask(available=ONLY_LOOK, provider=settings)
    assert report.cache == "begins"
    assert again["messages"][: len(body["messages"])] == body["messages"]


def test_a_stable_list_of_tools_withdraws_at_once_what_is_not_offered_PB7() -> None:
    stable = {"available": ONLY_LOOK, "prefix_stable": True}
    for host, tools, words in (
        (VENDOR, 1, []),
        (PROXY, 1, []),
    ):
        talk = Conversation(host)
        body, _ = talk.ask(**stable)
        assert (len(body["tools"]), said(body)) == (tools, words)
    talk = Conversation()
    body, report = talk.ask(
        available=ToolAvailability.only(Tools.send), prefix_stable=True, effort="low"
    )
    assert said(body)[0] == "tool_removal tool_reference look"
    assert report.appended[0] == "tool_removal look"
    again, report = talk.ask(available=BOTH, prefix_stable=True, effort="low")
    assert again["tools"] == body["tools"]
    assert report.cache == "begins"
    proxied = Conversation(PROXY)
    body, _ = proxied.ask(available=ONLY_SEND, prefix_stable=True)
    assert [entry["name"] for entry in body["tools"]] == ["send"]


def test_effort_is_said_behind_the_conversation_or_is_a_field_PB2() -> None:
    talk = Conversation()
    first, _ = talk.ask(effort="low")
    assert first["output_config"] == {"effort": "low"}
    second, report = talk.ask(effort="high")
    assert second["output_config"] == {"effort": "low"}
    assert said(second) == [{"effort": "high"}]
    assert report.appended == ("effort high",)
    third, _ = talk.ask(effort="medium")
    assert said(third) == [{"effort": "high"}, {"effort": "medium"}]
    # What a request without any has is `high`, so that is said.
    third, _ = talk.ask()
    assert said(third)[2:] == [{"effort": "high"}]
    fourth, _ = talk.ask(effort="low", available=ONLY_LOOK)
    assert said(fourth)[-1] == {"effort": "low"}
    proxied = Conversation(PROXY)
    for effort in ("low", "high", None):
        body, report = proxied.ask(effort=effort)
        assert body.get("output_config") == (None if effort is None else {"effort": effort})
        assert said(body) == []
    assert report.cache == "begins"  # effort spares the cache of the prompt there as well


def test_no_tool_changes_right_after_a_paused_answer_PB5() -> None:
    talk = Conversation()
    search: Json = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {"query": "x"},
    }
    web = {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}
    talk.ask([search], "pause_turn", available=BOTH, extra=web)
    body, report = talk.ask(available=ONLY_LOOK, extra=web)
    assert said(body) == []
    assert report.waiting == ("tool_removal send",)
    body, report = talk.ask(available=ONLY_LOOK, extra=web)
    assert said(body) == ["tool_removal tool_reference send"]
    assert report.waiting == ()


def test_a_reminder_stays_where_it_was_said_PB14() -> None:
    talk = Conversation()
    talk.session.push_ephemeral_system("It is Monday.")
    body, _ = talk.ask(thinking("a"))
    last = body["messages"][-1]
    assert (last["role"], last["clear_at"]) == ("system", "next_user_message")
    assert talk.session.transcript.settings[0].reminders == ("It is Monday.",)
    talk.session.push_ephemeral_user("Quick.")
    talk.session.push_ephemeral_system("It is Tuesday.")
    talk.ask(thinking("b"))
    body, report = talk.ask()
    assert said(body) == ["It is Monday.", "It is Tuesday."]
    # A user's message for one turn has no carrier: it leaves, and reasoning signed over it too.
    assert "Quick." not in str(body["messages"])
    assert not report.left_out
    loaded = Session.load(talk.session.dump())
    request = AnthropicMessages.request(loaded.transcript, Tools.offer(), model=FABLE, host=VENDOR)
    assert said(request) == ["It is Monday.", "It is Tuesday."]


def test_a_reminder_behind_an_answer_is_a_users_message_that_leaves_S4() -> None:
    """Texts for one turn follow a user's message, or a result of a tool that the provider ran."""
    summary: Json = {"type": "compaction", "content": "We said hello."}
    searched: Json = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    search: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"}
    for blocks, stop, is_carried in (
        ([summary], "compaction", False),
        ([{"type": "text", "text": "Hello."}], "end_turn", False),
        ([{**search, "input": {"query": "x"}}, searched], "pause_turn", True),
    ):
        session = Session()
        session.push_user("hi")
        answers = [
            AnthropicMessages.response(
                {
                    "id": f"msg_{n}",
                    "type": "message",
                    "role": "assistant",
                    "model": FABLE,
                    "content": content,
                    "stop_reason": reason,
                    "usage": {"input_tokens": 1, "output_tokens": 1},
                }
            )
            for n, (content, reason) in enumerate(
                [(blocks, stop), ([{"type": "text", "text": "Yes."}], "end_turn")]
            )
        ]
        Tools.offer().read(answers[0], session)
        session.push_ephemeral_system("It is Monday.")
        offer = Tools.offer()
        body = AnthropicMessages.request(session.transcript, offer, model=FABLE, host=VENDOR)
        last = body["messages"][-1]
        assert last["role"] == ("system" if is_carried else "user"), stop
        assert "It is Monday." in str(last)
        betas = AnthropicMessages.betas(body)
        assert ("mid-conversation-system-clear-at-2026-08-21" in betas) == is_carried
        offer.read(answers[1], session)
        session.push_user("And now?")
        again = AnthropicMessages.request(session.transcript, offer, model=FABLE, host=VENDOR)
        assert ("It is Monday." in str(again["messages"])) == is_carried
        assert not check_messages("anthropic_messages", again["messages"], model=FABLE)


def test_reasoning_of_a_model_that_binds_none_is_left_out_where_it_is_refused_PB13() -> None:
    talk = Conversation(model="claude-opus-4-6")
    talk.ask(thinking("a"))
    body, report = talk.ask(thinking("b"), model="claude-fable-5-2")
    assert "thinking" not in str(body["messages"])
    (left,) = report.left_out
    assert (left.turn, left.what) == (0, "signed reasoning")
    assert bool(report)
    # Back at the first model everything is there.
    body, _ = talk.ask(model="claude-opus-4-6")
    assert [m["content"][0]["signature"] for m in body["messages"] if m["role"] == "assistant"] == [
        "a",
        "b",
    ]


def test_the_beta_names_of_a_request_are_told_to_whoever_sends_it_PB2() -> None:
    talk = Conversation()
    talk.ask(available=BOTH)
    body, _ = talk.ask(available=ONLY_LOOK, effort="low")
    effort = "mid-conversation-output-config-2026-07-01"
    by_reference = "mid-conversation-tool-changes-2026-07-01"
    assert AnthropicMessages.betas(body) == [effort, by_reference]
    talk.session.push_ephemeral_system("It is Monday.")
    body, _ = talk.ask(available=BOTH, describe={Tools.look: "Look."}, effort="low")
    assert AnthropicMessages.betas(body, model=FABLE) == [
        "inline-tools-2026-09-15",
        effort,
        "mid-conversation-system-clear-at-2026-08-21",
        "thinking-binding-controls-2026-08-01",
    ]
    assert AnthropicMessages.betas({}, model="claude-opus-4-6") == []


def test_what_the_provider_left_out_is_in_the_report_PB11() -> None:
    talk = Conversation()
    talk.ask(thinking("a"))
    entries = [
        {"type": "drop", "path": "messages.1.content.0", "reason": "model_binding_mismatch"},
        {"type": "drop", "path": "messages.99.content.0", "reason": 3},
        {"type": "other"},
    ]
    _, report = talk.ask(further={"input_transformations": entries})
    assert [(lost.turn, lost.reason, lost.by) for lost in report.dropped] == [
        (0, "model_binding_mismatch", "provider"),
        (-1, "", "provider"),
        (-1, "", "provider"),
    ]


def test_an_earlier_message_that_is_another_one_is_named_PB20() -> None:
    talk = Conversation(PROXY)
    talk.session.push_ephemeral_user("Quick.")
    talk.ask()
    _, report = talk.ask()
    assert report.cache == "restarts"
    assert report.changed == ("messages.1",)


def test_a_policy_of_errors_names_what_changed_PB8() -> None:
    talk = Conversation(PROXY)
    talk.ask(thinking("a"), available=BOTH)
    with pytest.raises(PrefixChangedError) as caught:
        talk.ask(available=ONLY_LOOK, on_prefix_change="error")
    assert caught.value.changed == ("tools",)
    with pytest.raises(ValueError, match="none of append, drop, error"):
        talk.ask(on_prefix_change="never")
    with pytest.raises(ValueError, match="effort is blank"):
        talk.ask(effort=" ")
    with pytest.raises(TypeError, match="model takes text"):
        AnthropicMessages.request(Transcript(), None, model=3)


def test_tools_of_the_providers_own_are_part_of_what_reasoning_is_bound_to_PB8() -> None:
    talk = Conversation()
    web = {"type": "web_search_20250305", "name": "web_search"}
    talk.ask(thinking("a"), extra={"tools": [web]})
    body, report = talk.ask(thinking("b"), extra={"tools": [web]})
    assert "thinking" in str(body["messages"])
    assert not report
    body, report = talk.ask(extra={"tools": [{**web, "max_uses": 3}]})
    assert "thinking" not in str(body["messages"])
    assert [lost.turn for lost in report.dropped] == [0, 1]
