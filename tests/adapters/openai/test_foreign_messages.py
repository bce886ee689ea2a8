"""What another host gets of a message: the smallest forms, tried by themselves, since a transcript
holds no message without anything in it.
"""

from __future__ import annotations

from lutumpy.adapters.openai import facts_of
from lutumpy.adapters.openai.chat.elsewhere import fit_message
from lutumpy.adapters.openai.responses.carriers import ResponsesSpelling
from lutumpy.adapters.openai.responses.encode import NO_CARRIERS


def test_a_message_without_anything_keeps_a_text_OR2() -> None:
    facts = facts_of("api.groq.com")
    fitted, left = fit_message({"role": "assistant", "reasoning_content": "hm"}, facts)
    assert (fitted["content"], left) == ("", {"reasoning_content": "hm"})


def test_what_is_no_call_stays_as_it_is_OR2() -> None:
    message = {"role": "assistant", "content": "Hi", "tool_calls": ["odd"]}
    fitted, left = fit_message(message, facts_of("api.groq.com"))
    assert (fitted["tool_calls"], left) == (["odd"], {})


def test_responses_says_nothing_of_tools_that_are_withdrawn_PB6() -> None:
    spelling = ResponsesSpelling(NO_CARRIERS)
    assert not spelling.withdraw(("look",)).entry
    assert spelling.may_read("gpt-6.2")
