"""Annotations mean the same with `from __future__ import annotations` and without it.

From Python 3.14 on they are evaluated where somebody asks for them (PEP 649 and 749), so that a
function may name what only type checkers see without the import. Before, it can't: such a module
isn't tried without it on the older Pythons.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from lutumpy import DeclarationError, HookRegistrationError, Session, ToolMetadata
from lutumpy.execution import Dispatcher
from lutumpy.loops import run_tools_sync
from lutumpy.models import ToolResults
from lutumpy.testing import Call, Reply, ScriptedModel

LAZY = sys.version_info >= (3, 14)
NUMBERS = itertools.count()
FUTURE = "from __future__ import annotations\n"
HEAD = """
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Optional, Union
from pydantic import BaseModel
from lutumpy import *
from lutumpy.execution import Dispatcher
if TYPE_CHECKING:
    import engines
    from engines import Engine
    from lutumpy import ToolMetadata as CallData
    Key = int | str
"""


def modules(folder: Path, source: str, *, quoted: bool = False) -> Iterator[Any]:
    """The module of `HEAD` and `source` with the import and, where Python can, without it.

    Args:
        folder: Where its file is written.
        source: What follows `HEAD`.
        quoted: Whether it quotes what can't be evaluated, as the older Pythons need.
    """
    for kind, first in (("text", FUTURE), ("bare", ""))[: 2 if LAZY or quoted else 1]:
        # The bytecode of another source of the same size and second isn't told apart.
        name = f"{kind}_{next(NUMBERS)}"
        file = folder / f"{name}.py"
        file.write_text(first + HEAD + source)
        spec = spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
            yield module
        finally:
            del sys.modules[name]


def call(module: Any, arguments: str) -> Any:
    tools: Any = type("Tools", (module.Toolset,), {"run": module.tool(module.run)})
    return tools, tools.parse(ToolMetadata("c1", "run", arguments))


FUNCTIONS = [
    "engine: Skip[Engine]",
    "engine: Skip[engines.Engine]",
    "engine: Skip[Engine | None] = None",
    "engine: Skip[Key]",
    "engine: Skip[dict[str, Engine]]",
    "engine: Skip['Engine']",
]


def test_a_tool_may_take_what_only_checkers_can_name(tmp_path: Path) -> None:
    schemas = []
    for parameter in FUNCTIONS:
        source = f'''
@tool_fn
def run(word: Annotated[str, "What."], *, many: int | None = 2, {parameter}) -> str | None:
    """Run."""
    return f"{{word}} {{many}} {{engine}}"
'''
        for module in modules(tmp_path, source, quoted="'" in parameter):
            schemas.append(module.run.definition.input_schema)
            tools, ready = call(module, '{"word": "w", "many": null}')
            assert ready.call_sync(engine="e") == "w None e", parameter
            Dispatcher(tools, context={"engine": "d"}).close()
    assert schemas[0]["properties"]["word"]["description"] == "What."
    assert all(schema == schemas[0] for schema in schemas)


def test_what_can_not_be_evaluated_of_what_the_model_sees_is_refused(tmp_path: Path) -> None:
    for parameter, error in (
        ("Engine", "Engine"),
        ("Key | None", "Key"),
        ("list[Tomorrow]", "Tomorrow"),
    ):
        for source in (
            f"def run(word: {parameter}) -> str:\n    'Run.'\n",
            f"def run(word: str) -> {parameter}:\n    'Run.'\n",
        ):
            for module in modules(tmp_path, source):
                with pytest.raises(DeclarationError) as caught:
                    module.tool_fn(module.run)
                assert f"name '{error}' is not defined" in str(caught.value)
                assert source.partition("def ")[2].partition(":\n")[0] in str(caught.value)


@pytest.mark.skipif(not LAZY, reason="before Python 3.14 such a module can't be imported")
def test_names_of_the_function_around_are_found_beside_them(tmp_path: Path) -> None:
    source = '''
def make():
    class Place(BaseModel):
        street: str
    Many = list[Place]
    def run(places: Many, first: Place, *, engine: Skip[Engine]) -> int:
        """Run."""
        return len(places)
    return run

run = make()
'''
    for module in modules(tmp_path, source):
        if "annotations" in vars(module):
            continue  # with the import, nothing keeps the names of a function that has returned
        module.run = module.tool_fn(module.run)
        _, ready = call(module, '{"places": [{"street": "a"}], "first": {"street": "b"}}')
        assert ready.call_sync(engine=None) == 1


CLASSES = [
    '@tool_input(output=str)\nclass Run(BaseModel):\n    """Run."""\n',
    '@dataclass\nclass Run:\n    """Run."""\n',
]


def test_a_class_may_name_them_where_they_are_no_field(tmp_path: Path) -> None:
    body = """
    word: str
    'What.'
    many: "int | None" = None
    shared: ClassVar[Engine] = None
    def use(self, engine: Engine) -> Engine: ...
"""
    function = '''
@tool_fn
def run(it: Run) -> str:
    """Run."""
    return it.word
'''
    for head in CLASSES:
        schemas = []
        for module in modules(tmp_path, head + body + function):
            schemas.append(module.run.definition.input_schema)
            _, ready = call(module, '{"it": {"word": "w"}}')
            assert ready.call_sync() == "w"
        (run,) = schemas[0]["$defs"].values()
        assert run["properties"]["word"]["description"] == "What."
        assert all(schema == schemas[0] for schema in schemas)


HOOKS = """
@tool_fn
def run(word: str) -> str:
    'Run.'
    return word

class Tools(Toolset):
    run = tool(run)

class AppHooks(HookSet):
    @hook_slot("singleton")
    def greeting(self, name: str, engine: Engine = None) -> Key | None:
        return name

class Plugin:
    @hook_impl
    def run_hook(self, metadata: CallData, word: Key) -> RunNormally[Engine] | Reject | None:
        return Reject(word)

class Double:
    @hook_impl
    def greeting(self, name: str, engine: Engine) -> Key | None:
        return name * 2

class Typo:
    @hook_impl
    def run_hook(self, metadata: CallData, word: Engine, wrod: Engine) -> RunNormally[Engine]: ...
"""


def test_hooks_plugins_and_slots_may_name_them(tmp_path: Path) -> None:
    for module in modules(tmp_path, HOOKS):
        hooks = module.Tools.hooks()
        hooks.register(module.Plugin())
        session = Session()
        session.push_user("go")
        model = ScriptedModel([Reply(calls=[Call("run", {"word": "w"})])])
        outcome: Any = session.text_turn(model, tools=module.Tools).collect_sync()
        plan = outcome.round.apply_hooks_sync(hooks)
        assert [rejected.reason for rejected in plan.rejected] == ["w"]
        plan.discard()
        assert module.AppHooks().greeting("a") == "a"
        assert module.AppHooks().with_hooks(module.Double()).greeting("a") == "aa"
        with pytest.raises(HookRegistrationError, match="no parameter 'wrod'"):
            module.Tools.hooks().register(module.Typo())


HANDLERS = """
@tool_input(output=str)
class Order(BaseModel):
    'Order.'
    title: str

class Shop(Toolset):
    order = tool(Order)

dispatch = Dispatcher(Shop, context={"engine": "an engine", "key": "a value"})

@dispatch.on(Shop.order)
async def order(it: Order, *, engine: Engine, own: ToolMetadata) -> Key:
    return f"{engine} for {it.title} of {own.id}"
"""


def test_handlers_may_name_them_and_are_given_a_call_by_its_type(tmp_path: Path) -> None:
    for module in modules(tmp_path, HANDLERS):
        session = Session()
        session.push_user("go")
        replies = [Reply(calls=[Call("order", {"title": "Dune"}, id="c1")]), Reply(text="Done.")]
        model, dispatch = ScriptedModel(replies), module.dispatch
        result = run_tools_sync(session, model, tools=module.Shop, dispatch=dispatch)
        assert result.text == "Done."
        (results,) = [item for item in session.transcript if isinstance(item, ToolResults)]
        assert results.results[0].content == "an engine for Dune of c1"


def test_code_of_tools_of_the_run_may_name_them(tmp_path: Path) -> None:
    source = """
async def run(arguments: dict[str, Engine], engine: Engine = None) -> Engine:
    return "ran"

made = DynamicTool("run", "Run.", {"type": "object"}, run=run)
"""
    for module in modules(tmp_path, source):
        assert module.made.definition.name == "run"
