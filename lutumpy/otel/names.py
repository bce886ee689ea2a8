"""Every name that spans, events and metrics have, as strings.

The constants of `opentelemetry-semantic-conventions` are deprecated ("Moved to the OpenTelemetry
GenAI semantic conventions repository"), and the conventions still move, so no name is imported.
These are those of release 1.41 of the semantic conventions, the last before the move; what the
first release of the new repository (0.1.0) calls otherwise, `GEN_AI_0_1` has.
"""

from __future__ import annotations

from lutumpy.plain.values import dataclass

__all__ = ["GEN_AI_0_1", "SEMCONV_1_41", "Names"]

# --- the GenAI conventions ------------------------------------------------------------------------

OPERATION = "gen_ai.operation.name"
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"
INVOKE_AGENT = "invoke_agent"
PROVIDER = "gen_ai.provider.name"
CONVERSATION = "gen_ai.conversation.id"
AGENT_NAME = "gen_ai.agent.name"
OUTPUT_TYPE = "gen_ai.output.type"

REQUEST_MODEL = "gen_ai.request.model"
REQUEST_TEMPERATURE = "gen_ai.request.temperature"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
REQUEST_STREAM = "gen_ai.request.stream"

RESPONSE_ID = "gen_ai.response.id"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_FINISH_REASONS = "gen_ai.response.finish_reasons"
RESPONSE_TIME_TO_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"

USAGE = "gen_ai.usage"
# Sums over several requests; a back end that adds up `gen_ai.usage` must not count them twice.
AGGREGATED_USAGE = "gen_ai.aggregated_usage"
INPUT_TOKENS = "input_tokens"
OUTPUT_TOKENS = "output_tokens"
CACHE_READ_TOKENS = "cache_read.input_tokens"
REASONING_TOKENS = "reasoning.output_tokens"

TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_DESCRIPTION = "gen_ai.tool.description"

SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_CALL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_CALL_RESULT = "gen_ai.tool.call.result"

TOKEN_TYPE = "gen_ai.token.type"
# Of counters, which the newer conventions require it for; a usage doesn't tell it.
TOKEN_MODALITY = "gen_ai.token.modality"

# --- general conventions --------------------------------------------------------------------------

ERROR_TYPE = "error.type"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"

# --- this library's own ---------------------------------------------------------------------------

TURN = "turn"
OFFER_TOOLS = "lutumpy.offer.tools"
OFFER_MODE = "lutumpy.offer.mode"
TURN_CALLS = "lutumpy.turn.calls"
TURN_LEFT = "lutumpy.turn.left_early"
REQUEST_LEFT_OUT = "lutumpy.request.left_out"
REQUEST_DROPPED = "lutumpy.request.dropped"
REQUEST_CACHE = "lutumpy.request.cache"
REQUEST_RETRIES = "lutumpy.request.retries"
TOOL_EFFECT = "lutumpy.tool.effect"
CALL_ATTEMPT = "lutumpy.call.attempt"
CALL_REPAIRS = "lutumpy.call.repairs"
CALL_KEY = "lutumpy.call.key"
CALL_OUTCOME = "lutumpy.call.outcome"
LOOP_ROUNDS = "lutumpy.loop.rounds"
LOOP_STOPPED_BY = "lutumpy.loop.stopped_by"
CONTENT_CUT = "lutumpy.content.cut"

DECISION_EVENT = "lutumpy.tool_decision"
DECISION = "lutumpy.decision"
DECISION_HOOK = "lutumpy.decision.hook"
DECISION_SOURCE = "lutumpy.decision.source"
DECISION_REASON = "lutumpy.decision.reason"
ISSUE_EVENT = "lutumpy.tool_issue"
ISSUE_REASON = "lutumpy.issue.reason"
ISSUE_DETAIL = "lutumpy.issue.detail"
ISSUE_REPEAT = "lutumpy.issue.repeat"
COMMIT_EVENT = "lutumpy.commit"
COMMIT_ITEMS = "lutumpy.commit.items"
COMMIT_ROUND = "lutumpy.commit.round"
RETRY_EVENT = "lutumpy.retry"
LINK = "lutumpy.link"
LINK_EARLIER_PROCESS = "earlier_process"
LINK_PROMISE = "promise"
DELIVER = "deliver_result"
DELIVERY_STATUS = "lutumpy.delivery.status"

TOOL_DURATION = "lutumpy.tool.duration"
TOOL_ISSUES = "lutumpy.tool.issues"


@dataclass(frozen=True, slots=True)
class Names:
    """The names that differ between releases of the conventions.

    Attributes:
        cache_write: Input tokens written to the provider's cache, behind `gen_ai.usage.`.
        duration: The metric of a request's duration.
        first_chunk: The metric of the time to the first chunk of a stream.
        tokens: The metric of tokens, a histogram by `gen_ai.token.type`; `None` for counters by
            the names in `token_counters`.
        token_counters: What comes before `input_tokens` and its kin in the names of counters.
    """

    cache_write: str
    duration: str
    first_chunk: str
    tokens: str | None
    token_counters: str | None


SEMCONV_1_41 = Names(
    cache_write="cache_creation.input_tokens",
    duration="gen_ai.client.operation.duration",
    first_chunk="gen_ai.client.operation.time_to_first_chunk",
    tokens="gen_ai.client.token.usage",
    token_counters=None,
)
"""Release 1.41 of the semantic conventions."""

GEN_AI_0_1 = Names(
    cache_write="cache_write.input_tokens",
    duration="gen_ai.client.inference.duration",
    first_chunk="gen_ai.client.inference.time_to_first_chunk",
    tokens=None,
    token_counters="gen_ai.client.inference.usage",
)
"""The GenAI conventions in their own repository, as of its first release."""
