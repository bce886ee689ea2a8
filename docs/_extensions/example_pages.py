"""A page for each example that a page links to: its docstring, and its code with a copy button.

In the repository the links lead to the files; in the site they would be downloads.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from html import escape
from pathlib import Path, PurePosixPath
from posixpath import relpath
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.addnodes import download_reference
from sphinx.util.osutil import relative_uri

if TYPE_CHECKING:
    from sphinx.application import Sphinx

EXAMPLES = Path(__file__).parents[2] / "examples"


def _page_of(example: str) -> str:
    """The page of a file under `examples/`, without its ending."""
    return f"examples/{PurePosixPath(example).with_suffix('')}"


def _link_pages(app: Sphinx, doctree: nodes.document) -> None:
    here = app.env.docname
    for node in [*doctree.findall(download_reference)]:
        target = relpath((Path(app.srcdir) / here).parent / str(node["reftarget"]), EXAMPLES)
        if target[:2] != ".." and target.endswith(".py") and (EXAMPLES / target).is_file():
            uri = relative_uri(f"{here}.html", f"{_page_of(target)}.html")
            node.replace_self(nodes.reference("", "", *node.children, refuri=uri, internal=True))


def _make_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    for file in sorted(EXAMPLES.rglob("*.py")):
        name = file.relative_to(EXAMPLES).as_posix()
        source = file.read_text(encoding="utf-8")
        about = ast.get_docstring(ast.parse(source)) or ""
        page = _page_of(name)
        highlighter: Any = app.builder.highlighter  # type: ignore[attr-defined]
        code = highlighter.highlight_block(source, "python")
        lines = "".join(f"<p>{escape(part)}</p>" for part in about.split("\n\n")[:1])
        body = (
            f"<section id='code'><h1>{name}</h1>{lines}"
            f"<p><a href='{relative_uri(f'{page}.html', 'examples.html')}'>All examples</a></p>"
            f"<div class='highlight-python notranslate example'>{code}</div></section>"
        )
        yield page, {"title": f"Example: {name}", "body": body, "toc": ""}, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", _link_pages)
    app.connect("html-collect-pages", _make_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
