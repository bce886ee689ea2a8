"""Ways to break a valid history, one rule at a time, by API and name."""

from __future__ import annotations

import mutations_anthropic
import mutations_chat
import mutations_converse
import mutations_gemini
import mutations_responses
from breaking import Mutation

MUTATIONS: dict[str, dict[str, Mutation]] = {
    "openai_chat": mutations_chat.MUTATIONS,
    "openai_responses": mutations_responses.MUTATIONS,
    "anthropic_messages": mutations_anthropic.MUTATIONS,
    "bedrock_converse": mutations_converse.MUTATIONS,
    "gemini_generate_content": mutations_gemini.MUTATIONS,
}
THOROUGH: dict[str, set[str]] = {
    "openai_chat": set(),
    "openai_responses": {"calls_interleaved", "call_cut_off"},
    "anthropic_messages": {"text_behind_calls", "message_behind_calls"},
    "bedrock_converse": {"text_behind_calls"},
    "gemini_generate_content": {
        "results_in_another_order",
        "text_behind_results",
        "text_before_results",
        "second_signature",
        "unsigned",
        "media_type_of_another_name",
    },
}
"""What no provider is sure to refuse: mended by `thorough=True` alone."""
