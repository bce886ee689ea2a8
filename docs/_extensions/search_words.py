"""Words that readers look for, and that a page doesn't use: other names of its subject, and
questions that it answers.
"""

from __future__ import annotations

SEARCH_WORDS = {
    "CONTRIBUTING": "develop development contribute pull request nox",
    "adding_an_api": "new provider plugin custom adapter extend another API own protocol",
    "cassettes": "record replay recorded traffic vcr cassette snapshot http fixture offline test",
    "command_line": "CLI terminal shell command check fix convert history file CI lint",
    "costs": "dollars price token budget limit money usage spend quota cost counter",
    "doctor": (
        "fix repair broken history messages rejected rejects 400 bad request invalid "
        "tool_call_id missing tool result orphan validate check conversation"
    ),
    "durable": (
        "save store persist database sqlite postgres continue resume after a crash restart "
        "recover worker queue conversation events follow idempotent exactly once"
    ),
    "dynamic_tools": (
        "runtime tools database JSON schema user defined plugin different tools request tenant"
    ),
    "engines": "temporal dbos workflow engine activity replay",
    "errors": (
        "exception raise raised error handling catch rate limit 429 overloaded retry request "
        "timeout connection failed missing_result CommitError AdapterError"
    ),
    "evals": "evaluate evaluation quality judge dataset score test model regression",
    "examples": "sample code demo programs",
    "execution": (
        "run executor dispatcher concurrency parallel timeout timed out retry retries backoff "
        "cancel threads context dependencies async sync idempotent once duplicate"
    ),
    "fallback": (
        "overloaded switch provider another model vendor retry backup failover outage down"
    ),
    "finding_tools": "too many tools tool search hundreds large catalogue limit find",
    "front_ends": (
        "stream the answer to a browser web chat page react useChat AI SDK vercel AG-UI SSE "
        "starlette fastapi server sent events websocket frontend user interface"
    ),
    "hooks": (
        "policy guardrail approval approve ask person human in the loop permission reject "
        "edit arguments change cache budget middleware intercept before after redact audit"
    ),
    "hosts": (
        "ollama vllm sglang llama.cpp lmstudio groq openrouter deepseek mistral together "
        "compatible server base_url base url openai-compatible azure host"
    ),
    "late_results": "later promise long running asynchronous deliver webhook callback result job",
    "local": "ollama llama.cpp gguf offline local model laptop machine without key small",
    "loops": (
        "agent run_tools loop limit number of rounds max_rounds stop cancel progress display "
        "budget token usage final answer"
    ),
    "mcp": "model context protocol server stdio http tools client McpTools serve",
    "migration": (
        "langchain langgraph openai agents pydantic-ai smolagents instructor move switch port "
        "compare alternative from"
    ),
    "offers": (
        "web search hosted built-in provider tools tool_choice required none auto "
        "parallel_tool_calls parallel one only single call at a time force a tool available "
        "subset provider options cache strict gemini bedrock"
    ),
    "openapi": "swagger rest api http file specification operations",
    "operators": (
        "operate production deploy postgres migrate backup monitor stuck waiting metrics logs "
        "administration inspect"
    ),
    "page": "html report view share conversation show figure visual debug log what happened",
    "quickstart": (
        "install start begin hello world first steps base url base_url api key client openai "
        "anthropic gemini model own http client"
    ),
    "recipes/batch": "many conversations at once concurrency bulk thousands parallel process",
    "recipes/big_results": "long large output truncate cut result size handle",
    "recipes/index": "cookbook how to",
    "recipes/notebook": "jupyter ipython notebook cell repr",
    "recipes/per_request": "different tools for each user request permission role tenant",
    "recipes/pytest": "unit test mock fake without api key fixture",
    "recipes/read_then_act": "read only first write once phases restrict",
    "recipes/tenants": "budget limit quota customers multi-tenant token cost shared",
    "recipes/web_service": ("fastapi starlette flask http server browser approval endpoint rest"),
    "recipes/worker": "background job queue celery process",
    "replay": "replay recorded conversation what if another model policy fork simulate",
    "rounds": (
        "missing_result commit result results complete fail issue wrong arguments discard "
        "round call validation error"
    ),
    "security": "vulnerability report safe untrusted prompt injection threat secrets",
    "sessions": (
        "reasoning thinking signature save load dump conversation history serialize json "
        "persist switch provider usage tokens token budget trim fork memory"
    ),
    "streaming": (
        "stream deltas events text tokens as they arrive browser SSE live typing partial"
    ),
    "structured": (
        "pydantic model typed answer json schema output response_format extraction validate retry"
    ),
    "support_agent": "example program whole complete approval test agent",
    "telemetry": ("opentelemetry otel trace span metrics observability logging langfuse logfire"),
    "testing": (
        "test without api key fake mock scripted model server record replay cassette snapshot "
        "pytest offline hypothesis"
    ),
    "text_tools": (
        "model without native tool calling prompt parse text hermes qwen llama tags function "
        "calling unsupported"
    ),
    "tool_doctor": "lint check tools strict schema size lock drift CI token cost of tools",
    "toolclad": "subprocess shell command program manifest binary run executables",
    "tools": (
        "pass database connection state to a tool hide a parameter hidden argument Skip "
        "dependency inject context image file returns docstring description effect decorator "
        "function class union input output schema"
    ),
    "toolsets": (
        "group mypy pyright type checker typed nested namespace prefix rename inherit "
        "selector narrow exhaustive assert_never"
    ),
    "transcripts": (
        "import convert openai message history messages from_messages anthropic load existing "
        "export interchange"
    ),
    "versions": "deprecation compatibility semver release python support",
    "waiting": (
        "ask a person approval approve hold held human in the loop pause resume decide later "
        "wait promise pending"
    ),
    "why": "compare comparison alternatives difference when not to use",
}
