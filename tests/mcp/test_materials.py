"""Prompts, resources, completion, a call's own client, tasks and structured answers."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import MCPError
from mcp.server import Server
from mcp.types import (
    AudioContent,
    CallToolResult,
    ElicitResult,
    ListPromptsResult,
    ListToolsResult,
    Prompt,
    TextContent,
    ToolExecution,
)
from mcp_toolkit import make_tool, stdio_server
from pydantic import BaseModel

from lutumpy import (
    DeclarationError,
    DynamicInput,
    DynamicOutput,
    FilePart,
    HookError,
    ImagePart,
    NeedsTools,
    NoTools,
    RunNormally,
    Session,
    Skip,
    TextPart,
    ToolCall,
    ToolDecision,
    ToolError,
    ToolMetadata,
    Toolset,
    dynamic,
    tool,
    tool_fn,
)
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.mcp import McpConnectionError, McpTools, ServedCall, mcp_server
from lutumpy.testing import Call, Reply, ScriptedModel

PNG = b"\x89PNG\r\n\x1a\n"


def review(code: str, style: str = "short") -> str:
    """Review some code.

    More about it, which isn't listed.
    """
    return f"Review {code}, {style}."


async def dialogue() -> list[tuple[str, Any]]:
    return [
        ("user", "Look."),
        ("assistant", [TextPart("At what?"), ImagePart(PNG, "image/png")]),
    ]


def broken() -> str:
    raise ValueError("the password is hunter2")


def refused() -> str:
    raise ToolError("not today")


async def note(number: str) -> str:
    """One note."""
    if number == "9":
        raise KeyError("secret")
    return f"note {number}"


def listed() -> list[Any]:
    return ["secret", "secret"]


def instructions() -> list[Any]:
    return [("system", "secret")]


def propose(of: str, argument: str, typed: str) -> list[str]:
    return [f"{of}/{argument}/{typed}{n}" for n in range(150)]


RESOURCES: dict[str, Any] = {
    "file:///readme.md": "# Read me",
    "file:///plain": "text",
    "file:///bytes": b"\x00\x01",
    "file:///logo.png": ImagePart(PNG, "image/png"),
    "file:///part": TextPart("a part"),
    "file:///two": lambda: ["a", FilePart(b"%PDF", "application/pdf")],
    "file:///wrong": lambda: 3,
    "note://{number}/text": note,
}
SERVER = mcp_server(
    NoTools,
    prompts=[review, dialogue, broken, refused, listed, instructions],
    resources=RESOURCES,
    complete=propose,
)


async def test_prompts_are_listed_and_given(backend: str) -> None:
    async with McpTools(SERVER) as there:
        listed = {one.name: one for one in await there.prompts()}
        assert list(listed)[:4] == ["review", "dialogue", "broken", "refused"]
        assert listed["review"].description == "Review some code."
        arguments = listed["review"].arguments or []
        assert [(one.name, one.required) for one in arguments] == [("code", True), ("style", False)]
        (message,) = await there.prompt("review", {"code": "x=1"})
        assert (message.role, message.text) == ("user", "Review x=1, short.")
        first, second, third = await there.prompt("dialogue")
        assert [first.role, second.role, third.role] == ["user", "assistant", "assistant"]
        assert third.parts == (ImagePart(PNG, "image/png"),)
        assert third.text == ""


async def test_what_is_wrong_with_a_prompt_is_said_and_no_secret_leaves_K6(backend: str) -> None:
    async with McpTools(SERVER) as there:
        for name, arguments, why in (
            ("none", {}, "There is no prompt named 'none'"),
            ("review", {}, "missing a required argument: 'code'"),
            ("review", {"code": "x", "other": "y"}, "unexpected keyword argument 'other'"),
            ("broken", {}, "It failed: ValueError."),
            ("refused", {}, "not today"),
            ("listed", {}, "The prompt is neither text, nor content parts"),
            ("instructions", {}, "The prompt is neither text, nor content parts"),
        ):
            with pytest.raises(MCPError) as caught:
                await there.prompt(name, arguments)
            assert why in str(caught.value)
            assert "hunter2" not in str(caught.value)
            assert "secret" not in str(caught.value)


async def test_resources_are_listed_and_read_as_parts(backend: str) -> None:
    async with McpTools(SERVER, max_chars=12) as there:
        listed = {str(one.uri): one for one in await there.resources()}
        assert list(listed) == [uri for uri in RESOURCES if "{" not in uri]
        assert listed["file:///readme.md"].mime_type == "text/markdown"
        assert listed["file:///plain"].mime_type == "text/plain"
        assert listed["file:///bytes"].mime_type == "application/octet-stream"
        assert (listed["file:///plain"].name, listed["file:///two"].name) == ("plain", "two")
        (template,) = await there.resource_templates()
        assert (template.uri_template, template.name) == ("note://{number}/text", "note")
        assert template.description == "One note."
        for uri, parts in (
            ("file:///readme.md", (TextPart("# Read me"),)),
            ("file:///part", (TextPart("a part"),)),
            ("file:///logo.png", (ImagePart(PNG, "image/png"),)),
            ("note://4%2F2/text", (TextPart("note 4/2"),)),
        ):
            assert await there.read(uri) == parts, uri
        (part,) = await there.read("file:///bytes")
        assert isinstance(part, FilePart)
        assert part.data == b"\x00\x01"
        text, pdf = await there.read("file:///two")
        assert text == TextPart("a")
        assert isinstance(pdf, FilePart)
        (cut,) = await there.read("note://12345678/text")
        assert isinstance(cut, TextPart)
        assert cut.text.startswith("note 1234567")
        assert "left out" in cut.text
        for uri, why in (
            ("file:///none", "There is no resource"),
            ("note://1/2/text", "There is no resource"),
            ("note://9/text", "It failed: KeyError."),
            ("file:///wrong", "neither text nor bytes"),
        ):
            with pytest.raises(MCPError) as caught:
                await there.read(uri)
            assert why in str(caught.value)
            assert "secret" not in str(caught.value)


async def test_arguments_are_completed_a_hundred_at_most(backend: str) -> None:
    async with McpTools(SERVER) as there:
        found = await there.complete("code", "x", prompt="review", given={"style": "long"})
        assert (len(found), found[0]) == (100, "review/code/x0")
        found = await there.complete("number", "1", template="note://{number}/text")
        assert found[0] == "note://{number}/text/number/10"
        for wrong in ({}, {"prompt": "a", "template": "b"}):
            with pytest.raises(ValueError, match="one of prompt= and template="):
                await there.complete("a", "b", **wrong)


async def test_a_server_says_only_what_it_has() -> None:
    async with McpTools(mcp_server(NoTools)) as there:
        has = there.client.server_capabilities
        assert (has.prompts, has.resources, has.completions) == (None, None, None)
        with pytest.raises(MCPError):
            await there.prompts()
    async with McpTools(SERVER) as there:
        has = there.client.server_capabilities
        assert has.prompts is not None
        assert has.resources is not None
        assert has.completions is not None


def test_what_can_be_no_prompt_or_resource_is_refused_when_declared() -> None:
    for prompts in ([review, review], ["text"], [3]):
        with pytest.raises(DeclarationError, match="prompt"):
            mcp_server(NoTools, prompts=prompts)  # type: ignore[list-item]
    for value in (lambda: "", lambda other: "", "text"):
        with pytest.raises(DeclarationError, match="needs a function that takes number"):
            mcp_server(NoTools, resources={"note://{number}": value})


async def test_a_place_that_a_template_names_twice_holds_one_text() -> None:
    def same(a: str, b: str) -> str:
        return f"{a} and {b}"

    server = mcp_server(NoTools, resources={"note://{a}/{b}/{a}": same})
    async with McpTools(server) as there:
        assert await there.read("note://1%2F2/3/1%2F2") == (TextPart("1/2 and 3"),)
        with pytest.raises(MCPError, match="There is no resource"):
            await there.read("note://1/3/2")


async def test_a_list_without_end_and_a_closed_connection_are_errors() -> None:
    async def list_prompts(context: Any, params: Any) -> ListPromptsResult:
        return ListPromptsResult(prompts=[Prompt(name="a")], next_cursor="again")

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[])

    endless: Server[Any] = Server("a", on_list_tools=list_tools, on_list_prompts=list_prompts)
    there = McpTools(endless)
    for ask in (there.prompts, lambda: there.read("a")):
        with pytest.raises(McpConnectionError, match="isn't connected"):
            await ask()
    with pytest.raises(McpConnectionError, match="isn't connected"):
        _ = there.client
    async with there:
        with pytest.raises(McpConnectionError, match="doesn't come to an end"):
            await there.prompts()
    with pytest.raises(McpConnectionError):
        await there.prompts()


async def test_a_tool_that_is_a_task_alone_is_skipped_MCP6() -> None:
    tools = [
        make_tool("slow", execution=ToolExecution(task_support="required")),
        make_tool("either", execution=ToolExecution(task_support="optional")),
        make_tool("quick"),
    ]

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=tools)

    server: Server[Any] = Server("a", on_list_tools=list_tools)
    async with McpTools(server, client_options={"mode": "legacy"}) as there:
        assert [one.name for one in there.tools] == ["either", "quick"]
        assert "runs as a task alone" in there.skipped["slow"]
    # The older protocol has other tasks, which aren't spoken.
    async with McpTools(server, tasks=True, client_options={"mode": "legacy"}) as there:
        assert "runs as a task alone" in there.skipped["slow"]
    async with McpTools(server, tasks=True) as there:
        # Such a server says nothing of `taskSupport`: it decides at each call.
        assert [one.name for one in there.tools] == ["slow", "either", "quick"]


async def test_the_program_gets_structured_content_where_the_model_gets_text_MCP4(
    backend: str,
) -> None:
    class Weather(BaseModel):
        degrees: float

    @tool_fn
    def weather(city: str) -> Weather:
        """Weather."""
        return Weather(degrees=7)

    class Served(Toolset):
        weather_ = tool(weather)

    answers: list[Any] = []

    async def keep(call: Any, answer: CallToolResult) -> None:
        answers.append((call.name, answer.structured_content))

    for handler in (keep, lambda call, answer: answers.append((call.name, answer.is_error))):
        async with McpTools(mcp_server(Served), on_answer=handler) as there:
            call = there.toolset.parse(ToolMetadata("c1", "weather", '{"city": "Oslo"}'))
            (ran,) = await ToolExecutor().run([call], Dispatcher(there.toolset))
            assert ran.content == '{"degrees":7.0}'
    assert answers == [("weather", {"degrees": 7.0}), ("weather", False)]


# --- what a served tool says and asks -------------------------------------------------------------


class Form(BaseModel):
    city: str
    days: int = 1


@tool_fn
async def plan(call: Skip[ServedCall]) -> str:
    """Make a plan."""
    await call.report(1, 2, "asking")
    await call.log("warning", {"word": "asked"}, "plans")
    form = await call.ask("Where to?", Form)
    return "no trip" if form is None else f"{form.days} days in {form.city}"


class Plans(Toolset):
    plan_ = tool(plan)


PLANS = mcp_server(Plans, context=lambda request: {"call": ServedCall(request)})


async def run_plan(**options: Any) -> Any:
    async with McpTools(PLANS, **options) as there:
        call = there.toolset.parse(ToolMetadata("c1", "plan", "{}"))
        (ran,) = await ToolExecutor().run([call], Dispatcher(there.toolset))
        return ran


async def test_a_served_tool_reports_logs_and_asks(backend: str) -> None:
    heard: list[Any] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        heard.append(params.message)
        assert params.requested_schema["required"] == ["city"]
        return ElicitResult(action="accept", content={"city": "Oslo", "days": 3})

    async def log(params: Any) -> None:
        heard.append((params.level, params.data))

    ran = await run_plan(
        on_progress=lambda call, progress, total, message: heard.append((progress, total, message)),
        client_options={
            "mode": "legacy",
            "elicitation_callback": answer,
            "logging_callback": log,
        },
    )
    assert (ran.status, ran.content) == ("ok", "3 days in Oslo")
    for one in ((1.0, 2.0, "asking"), ("warning", {"word": "asked"}), "Where to?"):
        assert one in heard


HALF = "\ud800"  # as in the name of a file that isn't UTF-8: os.listdir gives it


@tool_fn
async def odd(call: Skip[ServedCall]) -> Any:
    """Say half a character wherever a tool can say something."""
    await call.report(1, 2, HALF)
    await call.log("warning", {HALF: HALF})
    await call.ask(HALF, Form)
    url = f"https://x/{HALF}"
    return [
        FilePart(b"x", "application/pdf", filename=f"{HALF}.pdf"),
        FilePart(b"x", f"audio/{HALF}"),
        ImagePart(PNG, f"image/{HALF}"),
        FilePart(url=url, filename=HALF),
    ]


class Odd(Toolset):
    odd_ = tool(odd)


async def test_half_a_character_ends_no_connection(backend: str) -> None:
    """Its SDK would find it when it writes to the client, and take the connection for broken."""
    heard: list[Any] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        heard.append(params.message)
        return ElicitResult(action="decline")

    async def log(params: Any) -> None:
        heard.append(params.data)

    async def report(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    hooks = Odd.hooks()

    @hooks.describe(Odd.odd_)
    def word(definition: Any) -> str:
        return HALF

    server = mcp_server(
        Odd,
        hooks=hooks,
        context=lambda request: {"call": ServedCall(request)},
        prompts=[review],
        complete=lambda of, argument, typed: [HALF, typed],
    )
    options = {"mode": "legacy", "elicitation_callback": answer, "logging_callback": log}
    async with McpTools(server, client_options=options) as there:
        (listed,) = (await there.client.list_tools()).tools
        result = await there.client.call_tool("odd", {}, progress_callback=report)
        proposed = await there.complete(HALF, HALF, prompt="review", given={HALF: HALF})
        (message,) = await there.prompt("review", {"code": HALF})
        with pytest.raises(MCPError, match="not found"):
            await there.read(f"note://{HALF}")
    for said in (listed, result):
        said.model_dump_json().encode()
    assert listed.description == "\ufffd"
    assert {"\ufffd"} == {one for one in heard if isinstance(one, str)}
    assert {"\ufffd": "\ufffd"} in heard
    assert proposed == ("\ufffd", "\ufffd")
    assert message.text == "Review \ufffd, short."


async def test_half_a_character_of_a_hook_ends_no_connection() -> None:
    """The SDK finds it when it writes, outside of any call."""

    class App(Toolset[ToolCall[DynamicInput, DynamicOutput]]):
        files = dynamic()

    hooks = App.hooks()

    @hooks.on(App.files)
    def edit(
        metadata: ToolMetadata, input: DynamicInput
    ) -> ToolDecision[DynamicInput, DynamicOutput]:
        return RunNormally(input=DynamicInput({"file": "\ud800"}))

    async with McpTools(stdio_server()) as source:
        offered = App.with_dynamic_tools({App.files: source.tools})
        session = Session()
        session.push_user("Which process?")
        model = ScriptedModel([Reply(calls=[Call("pid")])])
        outcome = await session.text_turn(model, tools=offered).collect()
        assert isinstance(outcome, NeedsTools)
        try:
            plan = await outcome.round.apply_hooks(hooks)
        except HookError:  # older validators find it
            outcome.round.discard()
        else:
            (result,) = await ToolExecutor().run(plan.pending, Dispatcher(offered))
            plan.commit(session, [result])
            assert result.outcome == "ok"
        assert source.connected


async def test_a_question_that_is_declined_misread_or_impossible() -> None:
    for action, content, expected in (
        ("decline", None, "no trip"),
        ("accept", {"city": "Oslo", "days": "many"}, "doesn't fit"),
    ):

        async def answer(context: Any, params: Any) -> ElicitResult:
            return ElicitResult(action=action, content=content)  # noqa: B023

        ran = await run_plan(client_options={"mode": "legacy", "elicitation_callback": answer})
        assert expected in str(ran.content)
    ran = await run_plan()
    assert ran.status == "error"
    assert "the client can't ask anybody" in str(ran.content)


def test_other_blocks_of_a_message_are_read_as_answers_are() -> None:
    from lutumpy.mcp.limits import Limits
    from lutumpy.mcp.results import read_message

    limits = Limits(20, 100)
    (cut,) = read_message(TextContent(text="x" * 30), limits)
    assert "left out" in getattr(cut, "text", "")
    (sound,) = read_message(AudioContent(data="AAAA", mime_type="audio/wav"), limits)
    assert isinstance(sound, FilePart)
