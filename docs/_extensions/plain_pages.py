"""Every page as Markdown at its own address, and `llms.txt`, which lists them: for programs that
read a site.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from reference_shape import shown
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def first_sentence(text: str) -> str:
    """Of a Markdown page: what stands first under its title."""
    paragraphs = [part.strip() for part in text.split("\n\n")]
    plain = (part for part in paragraphs if part and not part.startswith(("#", "```", "{", "<")))
    joined = " ".join(next(plain, "").split())
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", re.split(r"(?<=[.:])\s", joined)[0])


def without_tabs(text: str) -> str:
    """A page of Markdown whose tabs stand one below the other, each under its name."""
    named = re.sub(r"^:::\{tab-item\} (.+)\n:sync: .+$", r"**\1**", text, flags=re.MULTILINE)
    return re.sub(r"^:{3,}(\{tab-set\})?\n+", "", named, flags=re.MULTILINE)


def _markdown_of(node: nodes.Node, level: int = 1) -> Iterator[str]:
    """A page of the reference as Markdown: signatures as headings, and the texts under them."""
    for child in node.children:
        if isinstance(child, nodes.section):
            yield from _markdown_of(child, level + 1)
        elif isinstance(child, nodes.title):
            yield f"{'#' * (level - 1)} {child.astext()}"
        elif isinstance(child, addnodes.desc):
            signatures = [c for c in child.children if isinstance(c, addnodes.desc_signature)]
            yield f"{'#' * min(level, 5)} `{shown(signatures[0])}`"
            for content in child.findall(addnodes.desc_content):
                if content.parent is child:
                    yield from _markdown_of(content, level + 1)
        elif isinstance(child, nodes.literal_block):
            yield f"```\n{child.astext()}\n```"
        elif isinstance(child, (nodes.bullet_list, nodes.enumerated_list)):
            yield "\n".join(f"- {item.astext()}" for item in child.children)
        elif isinstance(child, nodes.field_list):
            for field in child.children:
                name, body = field.children
                yield f"{name.astext()}:"
                parts = [*body.findall(nodes.list_item)] or [body]
                yield "\n".join(f"- {' '.join(shown(part).split())}" for part in parts)
        elif isinstance(child, (nodes.raw, addnodes.index)) or not child.astext().strip():
            continue
        elif isinstance(child, nodes.Element):
            yield " ".join(shown(child).split())


def _pages_of(app: Sphinx, entry: str) -> Iterator[str]:
    """A page and, in their order, those that it lists."""
    yield entry
    for listed in app.env.toctree_includes.get(entry, []):
        yield from _pages_of(app, listed)


def _write_pages(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    site = Path(app.outdir)
    about: dict[str, str] = {}
    for name in app.env.found_docs:
        source = app.env.doc2path(name)
        text = without_tabs(Path(source).read_text(encoding="utf-8"))
        if not str(source).endswith(".md"):
            text = "\n\n".join(_markdown_of(app.env.get_doctree(name))) + "\n"
        (site / f"{name}.md").write_text(text, encoding="utf-8")
        about[name] = first_sentence(text)
    lines = [f"# {app.config.project}", "", f"> {about[app.config.root_doc]}"]
    for tree in app.env.get_doctree(app.config.root_doc).findall(addnodes.toctree):
        lines += ["", f"## {tree['caption']}", ""]
        for _, entry in tree["entries"]:
            for name in _pages_of(app, entry):
                title = app.env.titles[name].astext()
                lines.append(f"- [{title}]({name}.md): {about[name]}")
    (site / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", _write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
