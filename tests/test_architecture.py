"""Who may import whom, held against the `ast` of every module.

Imports count wherever they stand: inside functions and under `TYPE_CHECKING` as well.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from each_case import each

from lutumpy.apis import api_names, api_row

ROWS = [api_row(name) for name in api_names()]
PACKAGE = Path(__file__).parent.parent / "lutumpy"
MODULES = {
    ".".join(["lutumpy", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(
        ".__init__"
    ): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

# The house, floor by floor: each part may import itself and what stands before it, nothing else.
FLOORS = (
    "doors",
    "plain",
    "errors",
    "apis",
    "rules",
    "core",
    "costs",
    "dumps",
    "standing",
    "doctor",
    "adapters",
    "tools",
    "hooks",
    "rounds",
    "toolset",
    "finder",
    "histories",
    "session",
    "models",
    "streaming",
    "",  # the root
)
# Opt-in parts import public names. Nothing on the floors imports them.
OPT_IN = {
    "__main__",
    "budget",
    "cli",
    "demo",
    "durable",
    "execution",
    "local",
    "loops",
    "mcp",
    "openapi",
    "otel",
    "page",
    "provider_tools",
    "testing",
    "text_tools",
    "tool_doctor",
    "toolclad",
    "web",
}
DOORS = {
    "lutumpy",
    "lutumpy.adapters.anthropic",
    "lutumpy.adapters.bedrock",
    "lutumpy.adapters.gemini",
    "lutumpy.adapters.ollama",
    "lutumpy.adapters.openai",
    "lutumpy.adapters.writing",  # for who adds an API, and so are the other two
    "lutumpy.apis",
    "lutumpy.doctor",
    "lutumpy.doctor.writing",
    "lutumpy.durable.log",
    "lutumpy.errors",
    "lutumpy.hooks",
    "lutumpy.models",
    "lutumpy.rules.shape",  # for who adds an API
    "lutumpy.rules.writing",
    "lutumpy.streaming",
    "lutumpy.testing.wire",
    "lutumpy.tools",
    *[f"lutumpy.{part}" for part in OPT_IN],
}
# Plain tools, which know nothing of this library's subject: a second copy would be a second
# spelling.
PLAIN_TOOLS = {
    "lutumpy.doctor.json_patch",
    "lutumpy.doors",
    *[name for name in MODULES if name.startswith("lutumpy.plain.")],
}
# Private modules that an opt-in part may use all the same, each with its reason.
EXCEPTIONS: Mapping[tuple[str, str], str] = {
    (
        "lutumpy.web.live",
        "lutumpy.durable.shown",
    ): "a log without a store shows what one with a store does",
    ("lutumpy.web.sse", "lutumpy.durable.shown"): "events are sent as they are stored",
    ("lutumpy.web.runs", "lutumpy.durable.events"): "who stops a run stands in its log",
    (
        "lutumpy.web.incoming",
        "lutumpy.durable.conversation",
    ): "it compares a message with one that waits in the store",
    (
        "lutumpy.web.incoming",
        "lutumpy.durable.shown",
    ): "a message that waits is shown as its log will show it",
    (
        "lutumpy.text_tools.guided_schema",
        "lutumpy.rules.schema_walk",
    ): "references of a schema that is known at run time lead to any part of it",
    ("lutumpy.cli.show", "lutumpy.page.model"): "it prints what the page draws",
    ("lutumpy.cli.show", "lutumpy.page.text"): "it prints what the page draws",
    ("lutumpy.cli.show", "lutumpy.page.timeline"): "it prints what the page draws",
    ("lutumpy.cli.show", "lutumpy.page.notes"): "it prints what the page draws",
    ("lutumpy.cli.show", "lutumpy.page.readers"): "it prints what the page draws",
    (
        "lutumpy.cli.demo",
        "lutumpy.local.demo",
    ): "it runs the guided demo of the local model, which is no function for users",
    (
        "lutumpy.execution.parameters",
        "lutumpy.tools.signature",
    ): "it finds the annotations of a function as `tool_fn` does",
    (
        "lutumpy.page.timeline",
        "lutumpy.core.items",
    ): "the constant by which a rejection is recognised",
    (
        "lutumpy.testing.cassettes.http",
        "lutumpy.adapters.sdk_clients",
    ): "connections for recording are closed with their event loop, as those of adapters",
    (
        "lutumpy.testing.cassettes.outputs",
        "lutumpy.core.parts",
    ): "the heading by which what a result shows is recognised",
    (
        "lutumpy.testing.cassettes.outputs",
        "lutumpy.core.promises",
    ): "the heading by which a late result is recognised",
    (
        "lutumpy.testing.cassettes.outputs",
        "lutumpy.text_tools.result_form",
    ): "the form by which a result in text is recognised",
    (
        "lutumpy.testing.host_place",
        "lutumpy.rules.host_facts",
    ): "it stands for the hosts of the table",
    (
        "lutumpy.testing.past_results",
        "lutumpy.core.items",
    ): "the constant by which a rejection is recognised",
    (
        "lutumpy.testing.render_anthropic_server",
        "lutumpy.rules.anthropic.messages",
    ): "a rendering is one of the homes of its API",
    (
        "lutumpy.testing.render_anthropic_server",
        "lutumpy.rules.anthropic.models",
    ): "a rendering is one of the homes of its API",
    (
        "lutumpy.testing.render_anthropic_server",
        "lutumpy.rules.anthropic.moves",
    ): "a rendering is one of the homes of its API",
    (
        "lutumpy.testing.render_anthropic_server",
        "lutumpy.rules.anthropic.requests",
    ): "a rendering is one of the homes of its API",
    (
        "lutumpy.testing.render_gemini",
        "lutumpy.rules.gemini.models",
    ): "a rendering is one of the homes of its API",
    (
        "lutumpy.testing.render_gemini_server",
        "lutumpy.rules.gemini.fields",
    ): "a rendering is one of the homes of its API",
    (
        "lutumpy.testing.render_gemini_server",
        "lutumpy.rules.gemini.messages",
    ): "a rendering is one of the homes of its API",
    (
        "lutumpy.testing.render_gemini_server",
        "lutumpy.rules.gemini.moves",
    ): "a rendering is one of the homes of its API",
    (
        "lutumpy.testing.render_openai_server",
        "lutumpy.rules.openai.chat.host_fields",
    ): "a rendering is one of the homes of its API",
    (
        "lutumpy.testing.render_responses_server",
        "lutumpy.rules.openai.responses.items",
    ): "a rendering is one of the homes of its API",
    (
        "lutumpy.testing.render_responses_server",
        "lutumpy.rules.openai.responses.moves",
    ): "a rendering is one of the homes of its API",
    (
        "lutumpy.testing.render_responses_server",
        "lutumpy.rules.openai.shapes",
    ): "a rendering is one of the homes of its API",
    (
        "lutumpy.testing.render_responses_store",
        "lutumpy.rules.openai.responses.items",
    ): "a rendering is one of the homes of its API",
    (
        "lutumpy.testing.render_responses_store",
        "lutumpy.rules.openai.responses.limits",
    ): "a rendering is one of the homes of its API",
    (
        "lutumpy.testing.scripted",
        "lutumpy.adapters.provider_errors",
    ): "it raises the error of the adapter that it stands for",
    (
        "lutumpy.testing.scripted",
        "lutumpy.adapters.sdk_body",
    ): "it reads what the adapter would send, and only if somebody looks",
    (
        "lutumpy.tool_doctor.check",
        "lutumpy.rules.schema_walk",
    ): "it shows what a declaration becomes on the way to an API",
    (
        "lutumpy.tool_doctor.check",
        "lutumpy.rules.strict",
    ): "it shows what a declaration becomes on the way to an API",
    (
        "lutumpy.tool_doctor.check",
        "lutumpy.tools.compiled",
    ): "it shows what a declaration becomes on the way to an API",
    (
        "lutumpy.tool_doctor.declaration",
        "lutumpy.tools.schema_tool",
    ): "it shows what a declaration becomes on the way to an API",
    (
        "lutumpy.tool_doctor.schema_findings",
        "lutumpy.rules.schema_walk",
    ): "it shows what a declaration becomes on the way to an API",
    (
        "lutumpy.tool_doctor.schema_findings",
        "lutumpy.tools.schema_tool",
    ): "it shows what a declaration becomes on the way to an API",
    (
        "lutumpy.tool_doctor.declaration",
        "lutumpy.rules.schema_walk",
    ): "it shows what a declaration becomes on the way to an API",
    (
        "lutumpy.tool_doctor.declaration",
        "lutumpy.tools.compiled",
    ): "it shows what a declaration becomes on the way to an API",
    (
        "lutumpy.tool_doctor.declaration",
        "lutumpy.tools.docstrings",
    ): "it shows what a declaration becomes on the way to an API",
    (
        "lutumpy.toolclad.manifest",
        "lutumpy.tools.json_schema",
    ): "it holds values to a schema, as calls are held to theirs",
    (
        "lutumpy.toolclad.output",
        "lutumpy.tools.json_schema",
    ): "it holds values to a schema, as calls are held to theirs",
    (
        "lutumpy.toolclad.read",
        "lutumpy.tools.json_schema",
    ): "it holds values to a schema, as calls are held to theirs",
}
# What the adapters have in common; they know nothing of one another.
PROVIDERS = {"anthropic", "bedrock", "gemini", "ollama", "openai"}
# Whichever Python runs this, what is imported on newer ones alone belongs to it too.
STDLIB = sys.stdlib_module_names | {"annotationlib"}
# Third-party packages, by the parts that may import them. SDKs only inside functions; see
# `test_import_cost`.
THIRD_PARTY: Mapping[str, set[str]] = {
    "plain": {"pydantic_core"},
    "tools": {
        "docstring_parser",
        "jsonschema_rs",
        "pydantic",
        "pydantic_core",
        "typing_extensions",
    },
    "toolset": {"typing_extensions"},
    "finder": {"pydantic", "typing_extensions"},
    "hooks": {"pluggy", "pydantic", "typing_extensions"},
    "rounds": {"pydantic", "typing_extensions"},
    "adapters": {
        "anthropic",
        "anyio",
        "boto3",
        "botocore",
        "google",
        "httpx2",
        "openai",
        "pydantic_core",
        "typing_extensions",
    },
    "session": {"pydantic", "typing_extensions"},
}
LONGEST_MODULE = 500


class Import:
    def __init__(self, module: str, line: int) -> None:
        self.module = module
        self.line = line

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]

    @property
    def part(self) -> str:
        return part_of(self.module)


def part_of(module: str) -> str:
    """The part of the package that a module is in; `""` for the package's own `__init__`."""
    names = module.split(".")
    return names[1] if len(names) > 1 else ""


def imports(name: str) -> Iterator[Import]:
    """Every import of a module, wherever it stands."""
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(name, node)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield Import(full if full in MODULES else base, node.lineno)


def absolute(name: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = name.split(".") if MODULES[name].name == "__init__.py" else name.split(".")[:-1]
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


# Read when a test first asks: whoever only collects the tests needs no module parsed.
@functools.cache
def all_imports() -> Mapping[str, list[Import]]:
    return {name: list(imports(name)) for name in MODULES}


@functools.cache
def own_imports() -> Mapping[str, set[str]]:
    return {
        name: {found.module for found in listed if found.module in MODULES} - {name}
        for name, listed in all_imports().items()
    }


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of nodes that lead to each other, each sorted."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        found: set[str] = set()
        waiting = [start]
        while waiting:
            for following in graph[waiting.pop()] - found:
                found.add(following)
                waiting.append(following)
        reached[start] = found
    groups = {
        tuple(sorted({start, *[node for node in reached[start] if start in reached[node]]}))
        for start in graph
    }
    return sorted([list(group) for group in groups if len(group) > 1])


def test_every_part_of_the_package_is_in_the_table() -> None:
    assert {part_of(name) for name in MODULES} == {*FLOORS} | OPT_IN


@each("name", [name for name in MODULES if part_of(name) in FLOORS])
def test_a_module_imports_what_stands_on_its_floor_or_below(name: str) -> None:
    floor = FLOORS.index(part_of(name))
    for found in all_imports()[name]:
        if found.top == "lutumpy":
            where = f"{name}, line {found.line}: {found.module}"
            assert found.part in FLOORS[: floor + 1], f"{where}: not on a floor below"


@each("name", [name for name in MODULES if part_of(name) in OPT_IN])
def test_an_opt_in_part_imports_public_names(name: str) -> None:
    for found in all_imports()[name]:
        if found.top != "lutumpy" or found.part == part_of(name):
            continue
        if found.module not in DOORS | PLAIN_TOOLS and (name, found.module) not in EXCEPTIONS:
            raise AssertionError(f"{name}, line {found.line}: {found.module} is not public")


def test_every_exception_is_needed() -> None:
    unused = [pair for pair in EXCEPTIONS if pair[1] not in own_imports().get(pair[0], set())]
    assert unused == []


@each("name", [name for name in MODULES if part_of(name) in FLOORS])
def test_a_module_imports_only_the_packages_that_its_part_may(name: str) -> None:
    allowed = {"__future__", "lutumpy", *THIRD_PARTY.get(part_of(name), ())}
    for found in all_imports()[name]:
        known = found.top in STDLIB or found.top in allowed
        assert known, f"{name}, line {found.line}: {found.module}"


@pytest.mark.parametrize("part", ["adapters", "doctor", "rules"])
def test_one_provider_knows_nothing_of_another(part: str) -> None:
    for name in MODULES:
        mine = provider_of(name) if part_of(name) == part else None
        for found in all_imports()[name] if mine else ():
            assert provider_of(found.module) in (None, mine), f"{name} imports {found.module}"


def provider_of(module: str) -> str | None:
    names = module.split(".")
    is_provider = len(names) > 2 and names[1] in ("adapters", "doctor", "rules")
    return names[2] if is_provider and names[2] in PROVIDERS else None


# Words that only one provider's own files have: its folder, its API, and its SDK.
WORDS = ("anthropic", "bedrock", "boto", "gemini", "genai", "ollama", "openai")
# What names a provider elsewhere, each with its reason.
NAMES: Mapping[str, str] = {
    "lutumpy.adapters.provider_errors": "packages whose tracebacks two SDKs have in common",
    "lutumpy.adapters.sdk_events": "two SDKs that were generated alike, and read streams alike",
    "lutumpy.adapters.sdk_unsent": "two SDKs that were generated alike, and their root errors",
    "lutumpy.adapters.transport": "two SDKs that were generated alike, and their own modules",
    "lutumpy.apis": "the table",
    "lutumpy.budget.budget": "the list of prices, which has the name of a provider's package",
    "lutumpy.budget.cost": "the same",
    "lutumpy.budget.prices": "the same",
    "lutumpy.cli.demo": "whom it asks when nobody is named",
    "lutumpy.cli.show": "the list of prices",
    "lutumpy.cli.options": "a help text that says whose rules are meant",
    "lutumpy.core.model": "an error that shows what a model looks like",
    "lutumpy.demo.durable": "the address that a test server has for one SDK",
    "lutumpy.demo.durable_child": "a program as users write it, with one adapter",
    "lutumpy.local.server": "a server of one program, with adapters of the APIs that it speaks",
    "lutumpy.provider_tools": "tools that two providers have typed, by the types",
    "lutumpy.provider_tools.anthropic": "the same",
    "lutumpy.provider_tools.openai": "the same",
    "lutumpy.rounds.output_schema": "the narrowest strict form, to which schemas are held",
    "lutumpy.rules.call_ids": "the rule of hosts with an API of OpenAI, by their addresses",
    "lutumpy.rules.host_facts": "the names that hosts have in tables and on the command line",
    "lutumpy.rules.encoding": "what makers say of a broken text, by family",
    "lutumpy.rules.strict": "the dialects of strict schemas",
    "lutumpy.testing.paths": "hosts that put a word before the paths of an API",
    "lutumpy.testing.wire": "properties that users have, with a word of the SDK they are for",
    "lutumpy.text_tools.element_formats": "what servers and models call a format of calls",
    "lutumpy.text_tools.other_formats": "the same",
    "lutumpy.tools.declare": "the narrowest strict form, to which schemas are held",
    "lutumpy.tools.dynamic": "the narrowest strict form, to which schemas are held",
}
# The first two providers, and a word that is no provider's alone.
EARLY = {"anthropic", "genai", "openai"}
# Of these, who names a provider that came after the table; a further one should need no more.
LATER = {"lutumpy.apis", "lutumpy.rules.host_facts"}


@functools.cache
def names_of_providers(name: str) -> frozenset[str]:
    """The words in names and texts of a module's code; what comments and docstrings say is free."""
    tree = ast.parse(MODULES[name].read_text())
    said = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    found: list[str] = [each.module for each in all_imports()[name]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            found.append(node.value)
        elif isinstance(node, ast.Name | ast.arg | ast.Attribute):
            texts = [getattr(node, field, None) for field in ("id", "arg", "attr")]
            found += [text for text in texts if text is not None]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(node.name)
    # OpenTelemetry's word for its conventions is a package of one provider too.
    lowered = [text.lower().replace("_genai_", "") for text in found]
    return frozenset(word for word in WORDS for text in lowered if word in text)


def is_home(name: str) -> bool:
    """Whether a module is one of those that a row of the table names, or in their folders."""
    parts = name.split(".")
    if len(parts) > 2 and parts[1] in ("adapters", "doctor", "rules"):
        return parts[2] in PROVIDERS
    return any(name.startswith((f"{place}.", f"{place}_")) or name == place for place in PLACES)


PLACES = {
    place.partition(":")[0].removesuffix("_server")
    for row in ROWS
    for place in (row.rendering, row.server, row.page, row.demo)
    if place is not None
}


def test_no_file_but_its_own_names_a_provider() -> None:
    found = {name for name in MODULES if not is_home(name) and names_of_providers(name)}
    assert found == set(NAMES)
    assert {name for name in found if names_of_providers(name) - EARLY} == LATER


def test_only_hooks_know_pluggy() -> None:
    users = {
        part_of(name) for name in MODULES for found in all_imports()[name] if found.top == "pluggy"
    }
    assert users == {"hooks"}


def test_nothing_imports_the_command_line_but_its_entry_points() -> None:
    for name in MODULES:
        for found in all_imports()[name]:
            if found.part == "demo":
                assert part_of(name) in {"cli", "demo"}
            if found.part == "cli":
                assert part_of(name) in {"__main__", "cli"}


def test_no_circle_of_imports_has_more_than_two_files() -> None:
    assert [group for group in circles(own_imports()) if len(group) > 2] == []


def test_no_circle_of_imports_leads_through_several_folders() -> None:
    folders: dict[str, set[str]] = {}
    for name, others in own_imports().items():
        mine = folders.setdefault(part_of(name), set())
        mine |= {part_of(other) for other in others} - {part_of(name)}
    assert circles(folders) == []


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": {"f"}, "f": {"e"}}
    assert circles(graph) == [["a", "b", "c"], ["e", "f"]]


@each("name", MODULES)
def test_a_module_has_one_subject(name: str) -> None:
    lines = len(MODULES[name].read_text().splitlines())
    assert lines <= LONGEST_MODULE, f"{name} has {lines} lines: look for the seam"


def test_the_root_exports_what_it_names() -> None:
    import lutumpy

    names = list(lutumpy.__all__)
    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(lutumpy, name)] == []
