"""The documentation site: Sphinx reads the Markdown pages, and makes the reference of the
docstrings.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.ext.napoleon import Config as DocstringStyle
from sphinx.ext.napoleon import GoogleDocstring
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.logging import getLogger

import lutumpy
import lutumpy.mcp  # before autodoc, under which pydantic can't read a class of the SDK's
import lutumpy.provider_tools  # the same, of its own
from lutumpy.testing import Call, Reply

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

# A build makes millions of nodes, and lets few of them go before it ends.
gc.disable()

project = "lutumpy"
author = "the lutumpy authors"
project_copyright = "the lutumpy authors, MIT license"
version = release = lutumpy.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "site_search",
    "navigation",
    "plain_pages",
    "reference_shape",
    "example_pages",
]
# A type named `View` or `Result` may be that of several modules: the first one is linked.
suppress_warnings = ["ref.python"]
exclude_patterns = ["_build", "_extensions", "_static", "_templates"]
templates_path = ["_templates"]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block", "colon_fence"]

# What is copied: code and commands, without prompts and without what they print.
_COPIED = ("python", "py", "sh", "json", "toml", "console", "default")
copybutton_selector = ", ".join(f"div.highlight-{language} pre" for language in _COPIED)
copybutton_prompt_text = "$ "

html_theme = "furo"
html_title = f"lutumpy {release}"
html_show_sphinx = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["search.js"]
html_show_sourcelink = False

autodoc_default_options = {
    "members": True,
    "inherited-members": "BaseModel, Exception, str, tuple, dict, Generic, Protocol",
    "member-order": "bysource",
    "exclude-members": "add_note, args, with_traceback",
}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

# Modules whose every public name is in the reference.
PUBLIC_MODULES = [
    "lutumpy",
    "lutumpy.hooks",
    "lutumpy.doctor",
    "lutumpy.streaming",
    "lutumpy.models",
    "lutumpy.errors",
    "lutumpy.adapters.anthropic",
    "lutumpy.adapters.openai",
    "lutumpy.execution",
    "lutumpy.local",
    "lutumpy.loops",
    "lutumpy.page",
    "lutumpy.testing",
    "lutumpy.text_tools",
    "lutumpy.tool_doctor",
    "lutumpy.toolclad",
]
PUBLIC: dict[str, set[str]] = {
    name: {*importlib.import_module(name).__all__} for name in PUBLIC_MODULES
}
# Besides: the arguments of both OpenAI adapters.
PUBLIC["lutumpy.adapters.openai.model"] = {"OpenAIModel"}

# Values that the library makes: how they are made is nobody's business.
MADE_BY_THE_LIBRARY = {
    *(
        "AssistantTurn",
        "BaseToolCall",
        "Finished",
        "NeedsTools",
        "Offer",
        "Selector",
        "TextTurn",
        "ToolCall",
        "ToolFn",
    ),
    *(
        "ToolHooks",
        "ToolRound",
        "ToolRoundPlan",
        "ToolTurn",
        "TranscriptRound",
        "TurnResult",
        "TurnStream",
    ),
    *("ApprovalPolicy", "CladTools", "Evidence", "Manifest"),
    *(
        "LocalServer",
        "Problem",
        "Repair",
        "Transcript",
        "TurnStreamSync",
        "UnresolvedCall",
        "WireServer",
    ),
}

# Methods without an underscore that only the package's own parts call, across modules: no promise
# to users.
BETWEEN_PARTS = {
    *("ExecutionReport.begin", "ExecutionReport.end", "Transcript.committed", "Transcript.encoded"),
    *(
        "Transcript.failures",
        "Transcript.fresh_id",
        "Transcript.fresh_ids",
        "Transcript.release_ephemerals",
    ),
    *(
        "Transcript.request_succeeded",
        "Transcript.same_prefix",
        "Transcript.turn_discarded",
        "Transcript.with_tail",
    ),
}

# Every name in a signature has to be documented, or at least to exist (see `_at_least_there`). The
# rest:
nitpick_ignore_regex = [
    (r"py:(class|obj)", r"([\w.]+\.)?([A-Z]\d?|TS)(_co)?"),  # type variables
    (r"py:obj", r"typing\.~\w+"),  # the same, as typing shows them
    (r"py:class", r"P\.(args|kwargs)"),  # of a parameter specification
    (r"py:class", r"BaseModel|ConfigDict|Field|FieldInfo|JsonValue|NoneType"),  # pydantic's
    # Imported for type checkers only.
    (r"py:class", r"datetime|timedelta|Decimal|Console|random_module\.Random"),
    (r"py:(class|exc)", r"MCPError|ServerRequestContext"),  # of mcp
    (r"py:class", r"Self|TypeIs"),  # of typing_extensions, where Python is older
    (
        r"py:class",
        r"(Async)?(OpenAI|Anthropic)|Client|DBOSClient|TracerProvider|MeterProvider|Span"
        r"|ServerRequestContext",
    ),  # the SDKs' clients and providers, imported for type checkers only
    (r"py:exc", r"MCPError"),
]

# The `__init__` of a value is compiled outside its module, so the site would look for the names of
# its arguments everywhere. This one names a class whose name several modules have.
Reply.__init__.__globals__.update(Call=Call, Sequence=Sequence)

_logger = getLogger(__name__)
_STYLE = DocstringStyle(napoleon_attr_annotations=False)
_RULE = re.compile(r"\b(rules? [ACDEHKRSTU]\d+[a-z]?)\b")
_NAMED = re.compile(r"^(?: {4})?(?:class (\w+)|(\w+)(?:: TypeAlias)? = )", re.MULTILINE)
_NAMES_OF_OURS = Counter(
    name
    for file in Path(lutumpy.__file__).parent.rglob("*.py")
    for found in _NAMED.findall(file.read_text())
    for name in found
    if name
)
_CODE = re.compile(r"(?<![`:\w])`([^`\n]+)`(?!`)(?=(\w?))")


def _home(name: str, reader: str) -> str | None:
    """Where a public name is documented, for a text that stands in the module `reader`: its own
    package comes first.
    """
    homes = [home for home, names in PUBLIC.items() if name in names]
    if _NAMES_OF_OURS[name] > 1:  # another thing of that name may be meant
        homes = [home for home in homes if reader.startswith(f"{home}.") and home != "lutumpy"]
    homes.sort(key=lambda home: (not f"{reader}.".startswith(f"{home}."), -len(home)))
    return f"{homes[0]}.{name}" if homes else None


def _docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with sections and `code`: make of them what Sphinx reads."""
    module = getattr(obj, "__module__", None) or name

    def shown(match: re.Match[str]) -> str:
        home = _home(match[1].removesuffix("()"), module)
        text = f":py:obj:`{match[1]} <{home}>`" if home and home != name else f"``{match[1]}``"
        return text + "\\ " if match[2] else text  # so that a plural may follow

    if what == "data":
        lines[:] = _data_docs(name, obj)
    lines[:] = [_RULE.sub(r":doc:`\1 </rules>`", _CODE.sub(shown, line)) for line in lines]
    # Of a property the style would take what stands before a colon for its type.
    kind = "method" if what in ("attribute", "data", "property") else what
    lines[:] = GoogleDocstring(lines, _STYLE, app, kind, name, obj, options).lines()
    if inspect.isclass(obj):
        types = _attribute_types(obj)
        for k in reversed(range(len(lines))):
            attribute = lines[k].removeprefix(".. attribute:: ")
            if attribute == "type":  # else it would be taken for Python's in every annotation
                lines.insert(k + 1, "   :no-index:")
            if attribute != lines[k] and attribute in types:
                # What a schema says besides the type is named by a private constant.
                plain = re.sub(r"Annotated\[(\w+), Field\(.*_[A-Z]\w+\)\]", r"\1", types[attribute])
                lines.insert(k + 1, f"   :type: {plain}")


def _named_types(app: Sphinx, obj: Any, bound_method: bool) -> None:
    """Parameters of what makes a value are named by their types: it is compiled outside of its
    module, so Sphinx can't look them up, and names as `Call` are those of several.
    """
    module = (
        vars(sys.modules[obj.__module__]) if getattr(obj, "__module__", None) in sys.modules else {}
    )
    if getattr(obj, "__name__", "") == "__init__" and obj.__globals__.get("__name__") is None:
        try:
            obj.__annotations__ = get_type_hints(obj, dict(module))
        except (NameError, TypeError):
            return  # a name for type checkers alone


def _data_docs(name: str, value: Any) -> list[str]:
    """The text under an alias or a constant, in the module that defines it: its type has one of its
    own, about types.
    """
    leaf = name.rpartition(".")[2]
    for module in [module for key, module in sys.modules.items() if key.startswith("lutumpy")]:
        if vars(module).get(leaf) is value:
            docs = ModuleAnalyzer.for_module(module.__name__).find_attr_docs().get(("", leaf))
            if docs:
                return list(docs)
    _logger.warning("%s has no text under it", name, type="docstring")
    return []


def _attribute_types(cls: type) -> dict[str, str]:
    """The types of attributes as the source says them: in the class, as `self.x: T = x`, or of the
    parameter of that name.
    """
    types: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("lutumpy"):
            source = ModuleAnalyzer.for_module(base.__module__)
            source.analyze()
            annotations = source.annotations
            made = vars(base).get("__init__")
            types |= {
                parameter: str(text)
                for parameter, text in getattr(made, "__annotations__", {}).items()
            }
            types |= {
                attribute: text
                for (owner, attribute), text in annotations.items()
                if owner == base.__name__
            }
    return types


def _skipped(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """The fields of a `NamedTuple` stand under `Attributes:`, as those of other values; see also
    `BETWEEN_PARTS`. A field with the name `type` would be taken for Python's in every annotation.
    """
    return (
        True
        if name == "type"
        or type(obj).__name__ == "_tuplegetter"
        or getattr(obj, "__qualname__", "") in BETWEEN_PARTS
        else None
    )


def _signature(
    app: Sphinx,
    what: str,
    name: str,
    obj: Any,
    options: Any,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    if what == "class" and (
        name.rpartition(".")[2] in MADE_BY_THE_LIBRARY or getattr(obj, "_is_protocol", False)
    ):
        return "", None
    if signature:
        # A default that is made anew for each value has no text of its own.
        signature = re.sub(r" ?= ?<[^<>]*>", " = ...", signature)
    return signature, returned


def _folders(app: Sphinx, doctree: nodes.document) -> None:
    """A link to a folder of the repository is for those who read the page there; in the site it is
    its text.
    """
    for node in list(doctree.findall(pending_xref)):
        page = Path(app.env.doc2path(app.env.docname))
        if node.get("reftype") == "myst" and (page.parent / str(node["reftarget"])).is_dir():
            node.replace_self(node.children)


def _defaults(app: Sphinx, doctree: nodes.document) -> None:
    """A default that only says that nothing was given has a name that nobody knows."""
    for node in doctree.findall(nodes.inline):
        if "default_value" in node["classes"] and node.astext().startswith("_"):
            node[:] = [nodes.Text("...")]


def _at_least_there(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, contnode: nodes.TextElement
) -> nodes.reference | nodes.TextElement | None:
    """Public names by their short form are links; any other name stands without one, if there is
    such a thing.
    """
    if node.get("refdomain") != "py":
        return None
    target = str(node["reftarget"])
    home = _home(target.rpartition(".")[2], str(node.get("py:module") or "lutumpy"))
    if home is not None and home != target and (target.startswith("lutumpy.") or "." not in target):
        return env.domains.python_domain.resolve_xref(
            env, node["refdoc"], app.builder, "obj", home, node, contnode
        )
    return contnode if _exists(target) else None


def _exists(name: str) -> bool:
    """Whether the name can be imported; a short one, which only a type checker imports, is one of
    the package's.
    """
    module, _, attribute = name.rpartition(".")
    if not module:
        return name in _NAMES_OF_OURS
    try:
        return hasattr(importlib.import_module(module), attribute)
    except ImportError:
        return False


_OF_TABS = ("sphinx-design.min.css", "design-tabs.js")


def _without_tabs(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """A page without tabs doesn't load what they need."""
    has_tabs = doctree is not None and any(
        "sd-tab-set" in node["classes"] for node in doctree.findall(nodes.container)
    )
    if not has_tabs:
        for kind in ("css_files", "script_files"):
            context[kind] = [
                file for file in context[kind] if not str(file.filename).endswith(_OF_TABS)
            ]


def _found_once(app: Sphinx, env: BuildEnvironment) -> None:
    """Every page names the same types, and each name is looked for among those of all modules."""
    domain = env.domains.python_domain
    domain.find_obj = functools.cache(domain.find_obj)  # type: ignore[method-assign]


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", _without_tabs, priority=900)
    app.connect("autodoc-before-process-signature", _named_types)
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-skip-member", _skipped)
    app.connect("doctree-read", _folders)
    app.connect("doctree-read", _defaults)
    app.connect("env-check-consistency", _found_once)  # once all names are known
    app.connect("missing-reference", _at_least_there)
