"""Mistakes that no type checker can see are errors at the first moment at which they can be known,
and name what is wrong. The page `toolsets.md` says of each why no checker can.

What checkers do see is in `tests/typing/refuse_programs.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from lutumpy import (
    CommitError,
    Complete,
    DeclarationError,
    HookError,
    HookRegistrationError,
    NeedsTools,
    RunNormally,
    Session,
    Skip,
    ToolCall,
    ToolDecision,
    ToolInput,
    ToolMetadata,
    Toolset,
    hook_impl,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.execution import Dispatcher
from lutumpy.testing import Call, Reply, ScriptedModel

DOCS = Path(__file__).parent.parent / "docs"
RECIPES = [page for page in sorted((DOCS / "recipes").glob("*.md")) if page.stem != "index"]


class User(BaseModel):
    name: str


class Shop:
    stock: int = 1


@tool_input(name="get_user")
class GetUser(ToolInput[User]):
    """Look a user up."""

    name: str


@tool_input(name="delete_user", output=None)
class DeleteUser(BaseModel):
    """Delete a user."""

    name: str


@tool_fn(effect="read")
async def count(title: str, at_most: int = 3, *, shop: Skip[Shop]) -> int:
    """Count."""
    return 1


class Open(Toolset):
    get_user = tool(GetUser)
    delete_user = tool(DeleteUser, output=None)
    count = tool(count)


class Users(Toolset):
    get_user = tool(GetUser)


class Outer(Toolset):
    users = nested(Users)
    count = tool(count)


def round_of(toolset: type[Toolset[Any]], *calls: Call) -> tuple[Session, Any]:
    session = Session()
    session.push_user("Go on.")
    llm = ScriptedModel([Reply(calls=calls)])
    outcome = session.text_turn(llm, tools=toolset).collect_sync()
    assert isinstance(outcome, NeedsTools)
    return session, outcome.round


def test_an_output_for_a_call_that_was_not_narrowed() -> None:
    session, opened = round_of(Open, Call("get_user", {"name": "Ada"}))
    with pytest.raises(CommitError, match="'get_user' has a result that doesn't fit: User was exp"):
        opened.commit(session, [opened.calls[0].complete(object())])
    assert len(session.transcript) == 1
    opened.discard()


def test_a_nested_tool_by_its_name_alone() -> None:
    session, opened = round_of(Outer, Call("get_user", {"name": "Ada"}))
    (call,) = opened.calls
    assert Outer.users.get_user.matches(call)
    with pytest.raises(CommitError, match="User was expected, not str"):
        opened.commit(session, [call.complete("Ada")])
    opened.discard()


def test_a_plugin_class_whose_hook_takes_another_input() -> None:
    class Wrong:
        @hook_impl
        def get_user_hook(
            self, metadata: ToolMetadata, input: DeleteUser
        ) -> ToolDecision[DeleteUser, None]:
            return RunNormally()

    with pytest.raises(HookRegistrationError, match=r"Wrong\.get_user_hook.*DeleteUser"):
        Open.hooks().register(Wrong())


def test_a_plugin_class_whose_hook_has_no_tool() -> None:
    class Wrong:
        @hook_impl
        def get_usr_hook(self, metadata: ToolMetadata, input: GetUser) -> ToolDecision:
            return RunNormally()

    with pytest.raises(HookRegistrationError, match="did you mean get_user_hook"):
        Open.hooks().register(Wrong())


def test_a_bare_decision_with_another_output() -> None:
    hooks = Open.hooks()

    @hooks.on(Open.count)
    def many(metadata: ToolMetadata, title: str, at_most: int = 3, **_: Any) -> ToolDecision:
        return Complete("many")

    _, opened = round_of(Open, Call("count", {"title": "x"}))
    with pytest.raises(HookError, match=r"gave Complete\(str\): int was expected, not str"):
        opened.apply_hooks_sync(hooks)
    opened.discard()


def test_an_edit_of_an_argument_that_the_tool_does_not_have() -> None:
    hooks = Open.hooks()

    @hooks.on(Open.get_user)
    def misspelled(metadata: ToolMetadata, input: GetUser) -> ToolDecision[GetUser, User]:
        return RunNormally.edited(nam="Bob")

    _, opened = round_of(Open, Call("get_user", {"name": "Ada"}))
    with pytest.raises(HookError, match="has no argument nam; it has name"):
        opened.apply_hooks_sync(hooks)
    opened.discard()


def test_a_context_of_another_type() -> None:
    dispatch = Dispatcher(Open, context={"shop": "not a shop"})

    @dispatch.on(Open.delete_user)
    async def delete(input: DeleteUser) -> None: ...

    @dispatch.on(Open.get_user)
    async def get(input: GetUser, *, databse: Shop) -> User:
        return User(name=input.name)

    with pytest.raises(DeclarationError) as raised:
        dispatch.close()
    assert "'count' needs the context value 'shop' as Shop, and it is str" in str(raised.value)
    # A handler that asks for a value which the context doesn't have.
    assert "'get_user' needs the context value 'databse' (Shop)" in str(raised.value)


def test_a_skip_parameter_of_another_type() -> None:
    _, opened = round_of(Open, Call("count", {"title": "x"}))
    (call,) = opened.calls
    with pytest.raises(TypeError, match="takes Shop as its Skip parameter 'shop', not str"):
        anyio.run(lambda: call.call(shop="nope"))
    opened.discard()


def test_a_tool_that_the_union_leaves_out_D9() -> None:
    with pytest.raises(DeclarationError, match=r"no ToolCall for Bad\.delete_user"):

        class Bad(Toolset[ToolCall[GetUser, User]]):
            get_user = tool(GetUser)
            delete_user = tool(DeleteUser, output=None)


def test_a_whole_program_has_at_most_ninety_lines() -> None:
    """The support agent of the docs: toolsets, hooks, an approval, a redaction, all typed."""
    page = (Path(__file__).parent.parent / "docs" / "support_agent.md").read_text(encoding="utf-8")
    program = page.split("```python\n")[1].split("```")[0]
    lines = [line for line in program.splitlines() if line.strip()]
    assert len(lines) <= 90
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("page", RECIPES, ids=lambda page: page.stem)
def test_a_recipe_is_one_program_of_at_most_eighty_lines(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    programs = text.split("```python\n")[1:]
    assert len(programs) == 1
    lines = [line for line in programs[0].split("```")[0].splitlines() if line.strip()]
    assert len(lines) <= 80
    assert "**What it needs**" in text
    assert "**What to change**" in text
