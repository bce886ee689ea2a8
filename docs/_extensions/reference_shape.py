"""How an entry of the reference looks: one signature, the other forms of a function folded away, no
private name, and the methods of a class listed before they are explained.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PRIVATE = re.compile(r"(?<![\w.])_[A-Z]\w+")
LISTED_FROM = 4  # with fewer methods a class is seen at a glance


def shown(node: nodes.Element) -> str:
    """The text of a signature: of what a reference may become, only the short form."""
    copy = node.deepcopy()
    for either in [*copy.findall(addnodes.pending_xref_condition)]:
        if either.get("condition") != "resolved":
            either.parent.remove(either)
    return copy.astext()


def _fold_overloads(entry: addnodes.desc) -> None:
    """Keep the first form that shows no private name; the others stand below, to be opened."""
    forms = [child for child in entry.children if isinstance(child, addnodes.desc_signature)]
    if len(forms) < 2:
        return
    public = [form for form in forms if not PRIVATE.search(shown(form))]
    kept = max(public or forms, key=lambda form: len(shown(form)))
    others = [form for form in forms if form is not kept]
    # The place of the entry stands at its first form.
    if not kept["ids"]:
        kept["ids"] = [place for form in others for place in form["ids"]]
    lines = [PRIVATE.sub("a decorator", shown(form)) for form in others]
    for form in others:
        entry.remove(form)
    count = f"{len(lines)} other forms" if len(lines) > 1 else "Another form"
    rows = escape("\n".join(" ".join(line.split()) for line in lines))
    text = f'<details class="forms"><summary>{count}</summary><pre>{rows}</pre></details>'
    entry.children[-1] += nodes.raw("", text, format="html")


def _first_sentence(entry: addnodes.desc) -> str:
    paragraph = next(iter(entry.children[-1].findall(nodes.paragraph)), None)
    text = " ".join(paragraph.astext().split()) if paragraph is not None else ""
    return re.split(r"(?<=[.:;])\s", text)[0]


def _list_methods(entry: addnodes.desc) -> None:
    content = entry.children[-1]
    methods = [
        child
        for child in content.children
        if isinstance(child, addnodes.desc) and "method" in child["objtype"]
    ]
    if len(methods) < LISTED_FROM:
        return
    rows = nodes.bullet_list(classes=["methods"])
    for method in methods:
        signature = method.children[0]
        assert isinstance(signature, addnodes.desc_signature)
        name = next(iter(signature.findall(addnodes.desc_name))).astext()
        link = nodes.reference("", "", nodes.literal("", name), refid=signature["ids"][0])
        text = nodes.Text(f": {_first_sentence(method)}")
        rows += nodes.list_item("", nodes.paragraph("", "", link, text))
    content.insert(content.index(methods[0]), rows)


def _shape(app: Sphinx, doctree: nodes.document) -> None:
    entries = [*doctree.findall(addnodes.desc)]
    for entry in entries:
        _fold_overloads(entry)
        for text in [*entry.children[0].findall(nodes.Text)]:
            if PRIVATE.search(text):  # a type that only its methods matter of
                text.parent.replace(text, nodes.Text(PRIVATE.sub("...", text)))
    for entry in entries:
        if entry["objtype"] in ("class", "exception"):
            _list_methods(entry)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", _shape)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
