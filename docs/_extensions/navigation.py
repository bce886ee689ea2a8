"""The navigation of a page, made of titles alone.

Furo asks for the whole tree of contents on every page, and shows the titles of it. Sphinx copies
the headings and the entries of the reference with it, thousands of nodes, before it leaves them
out: a third of the time of a build.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def _titles(contents: nodes.bullet_list) -> nodes.bullet_list:
    """The contents of a page as `titles_only` leaves them: its title, and the lists of pages that
    stand anywhere in it.
    """
    copy = contents.deepcopy()
    for entry in copy.children:
        assert isinstance(entry, nodes.Element)
        if len(entry.children) < 2:
            continue
        title, below = entry.children[:2]
        assert isinstance(below, nodes.Element)
        lists_of_pages = [*entry.findall(addnodes.toctree)]
        entry[:] = [title]
        if lists_of_pages:
            below[:] = lists_of_pages
            entry += below
    return copy


def setup(app: Sphinx) -> dict[str, bool]:
    titles: dict[str, nodes.bullet_list] = {}

    def make_tree_of_titles(
        app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
    ) -> None:
        make_tree = context.get("toctree")
        if make_tree is None:
            return
        if not titles:
            titles.update((name, _titles(toc)) for name, toc in app.env.tocs.items())

        def toctree(**options: Any) -> str:
            contents = app.env.tocs
            if options.get("titles_only"):
                app.env.tocs = titles
            try:
                return str(make_tree(**options))
            finally:
                app.env.tocs = contents

        context["toctree"] = toctree

    # Furo asks for the tree at the usual priority, which is 500.
    app.connect("html-page-context", make_tree_of_titles, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
