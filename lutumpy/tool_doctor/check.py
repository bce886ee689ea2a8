"""The check itself: every tool compiled for every API, strict and not."""

# What is hard: one toolset has many renderings, and the developer wants each fact once.
#
#   for each            looked at
#   ------------------------------------------------------------------------------------
#   tool                its declaration, which is the same for every API
#   API                 what its adapter makes of the tool
#   way of sending      strict and not, unless the caller says which of them is used
#   offer               the tools that are on by default; all of them, where some are off
#
# A finding that holds for several APIs becomes one finding that lists them (`found`). One
# that was made without strict isn't made again with it (`known`), one of the default offer isn't
# made again for all tools. What only strict adapters or the offer of all tools would run into is a
# warning and not an error, since the application may never do that.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lutumpy import DeclarationError, Lark, Selector, ToolDef, Toolset
from lutumpy.apis import Api, api_names, serving
from lutumpy.doctor import Certainty, Problem
from lutumpy.models import TextInput
from lutumpy.plain.pointer import pointer
from lutumpy.rules.schema_walk import walk
from lutumpy.rules.strict import Dialect, strict_changes, strict_counts
from lutumpy.tool_doctor.declaration import declaration_findings
from lutumpy.tool_doctor.provider import (
    has_own_type,
    settings_findings,
    unknown_api_findings,
)
from lutumpy.tool_doctor.renderings import Rendering, list_bytes, list_tokens, read_declared, render
from lutumpy.tool_doctor.report import (
    Finding,
    OfferName,
    Severity,
    ToolListSize,
    ToolReport,
)
from lutumpy.tools.compiled import CompiledTool

__all__ = ["check_tools"]

_SEVERITY: Mapping[Certainty, Severity] = {
    "refused": "error",
    "some": "warning",
    "discouraged": "info",
}
Key = tuple[str, str | None, str, str]

# Keywords that no provider enforces: nothing is lost when they move into the description.
_ONLY_INFORMING = frozenset({"default", "examples", "deprecated"})
_RANK: Mapping[Severity, int] = {"error": 0, "warning": 1, "info": 2}


def check_tools(
    tools: type[Toolset[Any]] | Iterable[ToolDef],
    *,
    apis: Sequence[Api] | None = None,
    strict: bool | None = None,
) -> ToolReport:
    """Compile every tool for every API, and say what is lost, changed or refused.

    Args:
        tools: A toolset, or the definitions of tools that are offered together.
        apis: The APIs to look at; all of `lutumpy.apis` if omitted.
        strict: What the application's adapters are given as `strict`. `True` and `False` look at
            that way of sending alone. When left out, both are looked at, and what would be refused
            only with `strict=True` is a warning.
    """
    if isinstance(tools, type):
        toolset = tools
        name = toolset.__name__
        sources = {selector.name: selector.tool for selector in toolset.selectors()}
        definitions = toolset.definitions()
        default = _name_all(toolset.default_selectors())
    else:
        name, sources, definitions = "", {}, tuple(tools)
        default = frozenset([definition.name for definition in definitions])
    names = api_names() if apis is None else tuple(apis)
    check = _Check(definitions, default, names, strict)
    check.run(sources)
    order = {definition.name: index for index, definition in enumerate(definitions)}
    last = len(order)
    findings = sorted(
        check.merged(), key=lambda f: (order.get(f.tool or "", last), _RANK[f.severity])
    )
    return ToolReport(name, tuple(order), tuple(findings), tuple(check.sizes))


def _name_all(selectors: Iterable[Selector[Any, Any, Any]]) -> frozenset[str]:
    return frozenset([selector.name for selector in selectors])


class _Check:
    """One run: findings are gathered API by API, and joined where several APIs share one."""

    def __init__(
        self,
        definitions: tuple[ToolDef, ...],
        default: frozenset[str],
        apis: tuple[Api, ...],
        strict: bool | None,
    ) -> None:
        self.definitions = definitions
        self.default = default
        self.apis = apis
        self.strict = strict
        self.sizes: list[ToolListSize] = []
        self.found: dict[Finding, list[Api]] = {}

    def run(self, sources: Mapping[str, CompiledTool]) -> None:
        for definition in self.definitions:
            for finding in declaration_findings(definition, sources.get(definition.name)):
                self.found[replace(finding, apis=())] = list(self.apis)
            for finding in unknown_api_findings(definition):
                self.found[finding] = []
        modes = (False, True) if self.strict is None else (self.strict,)
        for api in self.apis:
            known: set[Key] = set()
            for strict in modes:
                self.check_api(api, strict, known)

    def merged(self) -> Iterator[Finding]:
        for finding, apis in self.found.items():
            yield replace(finding, apis=tuple(apis))

    def add(self, api: Api, finding: Finding) -> None:
        apis = self.found.setdefault(replace(finding, apis=()), [])
        if api not in apis:
            apis.append(api)

    def check_api(self, api: Api, strict: bool, known: set[Key]) -> None:
        """Every tool and the list, as an adapter of `api` sends them with this `strict`."""
        # Both ways are looked at, and this is the one that the application may not use.
        is_perhaps = strict and self.strict is None
        renderings: dict[str, Rendering] = {}
        for definition in self.definitions:
            rendering = renderings[definition.name] = render(definition, api, strict=strict)
            if is_perhaps and definition.options.strict is not None:
                continue  # sent in the same way whatever the adapter is given
            for finding in _find_in_tool(definition, api, rendering, strict):
                if _make_key(finding) not in known:
                    self.add(api, finding)
                known.add(_make_key(finding))
        offers: list[tuple[OfferName, list[ToolDef]]] = [
            (
                "default",
                [definition for definition in self.definitions if definition.name in self.default],
            )
        ]
        if len(self.default) < len(self.definitions):
            offers.append(("all", list(self.definitions)))
        for offer, offered in offers:
            sent = [renderings[definition.name] for definition in offered]
            bodies = [rendering.tool for rendering in sent if rendering.tool is not None]
            renderable = [d.name for d in offered if renderings[d.name].tool is not None]
            self.sizes.append(_measure_list(api, strict, offer, len(offered), sent))
            for problem in _check_list(api, bodies):
                finding = _convert_problem(problem, renderable, offer)
                if is_perhaps or (offer == "all" and finding.tool is None):
                    finding = _soften(finding, strict=is_perhaps)
                # A fault of the default list is a fault of the longer list too.
                if _make_key(finding) not in known:
                    self.add(api, finding)
                known.add(_make_key(finding))


def _make_key(finding: Finding) -> Key:
    """What makes two findings the same: of the list only its rule, since the numbers differ from
    one list to the other.
    """
    message = "" if finding.tool is None else finding.message
    return finding.rule, finding.tool, finding.path, message


def _soften(finding: Finding, *, strict: bool) -> Finding:
    severity: Severity = "warning" if finding.severity == "error" else finding.severity
    return replace(finding, severity=severity, strict=finding.strict or strict)


def _find_in_tool(
    definition: ToolDef, api: Api, rendering: Rendering, strict: bool
) -> Iterator[Finding]:
    name = definition.name
    asks = definition.options.strict is True
    if rendering.tool is None:
        yield Finding("error", "tool.refused", rendering.refusal, name, strict=asks)
    yield from settings_findings(definition, api)
    if definition.text is not None:
        if getattr(serving(api, "rules"), "TEXT_TOOLS", False):
            return  # sent as a text, which has no schema to be strict about
        yield from _find_in_text(definition, definition.text)
    wants = strict if definition.options.strict is None else asks
    if not wants or has_own_type(definition, api):
        return
    dialect: Dialect | None = getattr(serving(api, "rules"), "STRICT", None)
    if dialect is None:  # its adapter has no strict tools, or its rules say nothing of them
        return
    try:
        _, changes = strict_changes(definition.input_schema, dialect)
    except DeclarationError as error:
        yield from _explain_no_strict_form(definition, str(error), "error" if asks else "warning")
        return
    if rendering.tool is not None and not rendering.strict:
        yield Finding(
            "warning",
            "strict.none",
            "its strict form would be refused: it is sent without",
            name,
            strict=True,
        )
    for change in changes:
        if change.kind == "described":
            tells = change.keyword in _ONLY_INFORMING
            severity: Severity = "warning" if asks and not tells else "info"
            message = (
                f"{change.keyword!r} {'' if tells else 'is not enforced: it '}is moved into the "
                "description"
            )
            yield Finding(severity, "strict.keyword", message, name, path=change.path, strict=True)
        elif change.kind == "nullable":
            message = "the parameter is optional; it becomes required, with null for its default"
            yield Finding("info", "strict.nullable", message, name, path=change.path, strict=True)
        else:
            yield Finding(
                "info",
                "strict.any_of",
                "'oneOf' becomes 'anyOf'",
                name,
                path=change.path,
                strict=True,
            )


def _find_in_text(definition: ToolDef, text: TextInput) -> Iterator[Finding]:
    """What is lost of a text tool where an API knows none."""
    message = "it takes a text; it is offered as a function with the one string 'input'"
    yield Finding("info", "text.function", message, definition.name)
    if isinstance(text.format, Lark):
        message = (
            "its Lark grammar is not enforced, and texts aren't parsed here: the model is told of "
            "it in the description, and the tool has to check what it gets"
        )
        yield Finding("warning", "text.grammar", message, definition.name)
    elif text.format is not None:
        message = (
            "its regular expression is not enforced by the API: the model is told of it in the "
            "description, and a text that doesn't match is refused before it is run"
        )
        yield Finding("info", "text.grammar", message, definition.name)


def _explain_no_strict_form(
    definition: ToolDef, reason: str, severity: Severity
) -> Iterator[Finding]:
    """Every open dictionary by itself; what else hinders a strict form, as the one that is met
    first.
    """
    ends = "it is refused" if severity == "error" else "it is sent without strict"
    opens = [path for path, _, node in walk(definition.input_schema) if _is_open(node)]
    for path in opens:
        message = f"an object that takes any property has no strict form: {ends}"
        yield Finding(
            severity,
            "strict.open_object",
            message,
            definition.name,
            path=pointer(path),
            strict=True,
        )
    if not any(f" at {pointer(path) or '/'}: " in reason for path in opens):
        yield Finding(severity, "strict.none", f"{reason}; {ends}", definition.name, strict=True)


def _is_open(node: Any) -> bool:
    if not isinstance(node, Mapping):
        return False
    kinds = node.get("type")
    is_object = kinds == "object" or (isinstance(kinds, list) and "object" in kinds)
    return is_object and (
        node.get("additionalProperties", False) is not False or "properties" not in node
    )


def _check_list(api: Api, tools: list[dict[str, Any]]) -> list[Problem]:
    check = getattr(serving(api, "rules"), "check_tools", None)
    found: list[Problem] = check(tools) if tools and check is not None else []
    return found


def _convert_problem(problem: Problem, names: list[str], offer: OfferName) -> Finding:
    """A problem of a list as a finding; `names` are those of the tools in the list."""
    message = problem.message
    tool: str | None = None
    index = _read_index(problem.position)
    if index is not None:
        tool = names[index]
    elif len(problem.tools) == 1:
        (tool,) = problem.tools
    elif problem.tools:
        message += f" ({', '.join(problem.tools)})"
    if tool is None and offer == "all":
        message += " (all tools, those that are off by default included)"
    is_strict = ".strict_" in problem.rule
    return Finding(_SEVERITY[problem.certainty], problem.rule, message, tool, strict=is_strict)


def _read_index(position: str) -> int | None:
    """The tool's index in `tools[3].function` or `tools.3.custom`."""
    digits = position.removeprefix("tools").lstrip("[.").split("]")[0].split(".")[0]
    return int(digits) if position.startswith("tools") and digits.isdigit() else None


def _measure_list(
    api: Api, strict: bool, offer: OfferName, count: int, sent: list[Rendering]
) -> ToolListSize:
    bodies = [rendering.tool for rendering in sent if rendering.tool is not None]
    strict_ones = [read_declared(r.tool, api) for r in sent if r.strict and r.tool is not None]
    schemas = [declared.schema for declared in strict_ones if declared is not None]
    counts = [strict_counts(schema) for schema in schemas]
    size = list_bytes(bodies, api)
    return ToolListSize(
        api=api,
        strict=strict,
        offer=offer,
        tools=count,
        bytes=size,
        tokens=list_tokens(api, size),
        strict_tools=len(schemas),
        optional_parameters=sum(optional for optional, _ in counts),
        union_parameters=sum(unions for _, unions in counts),
    )
