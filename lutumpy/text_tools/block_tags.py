"""What is looked for in the blocks of one way to write calls."""

from __future__ import annotations

from collections.abc import Sequence

from lutumpy.text_tools.syntax import CallSyntax
from lutumpy.text_tools.tag_search import TagSearch
from lutumpy.text_tools.trailing_text import begins_rest
from lutumpy.text_tools.written_calls import CallForm

__all__ = ["BlockTags"]


class BlockTags:
    """What is looked for in the blocks of one syntax.

    Args:
        syntax: How its calls are written.
        starts: The start tags of all syntaxes of the parser.
    """

    __slots__ = ("after_name", "ends", "ends_or_starts", "form", "separator_is_json", "syntax")

    def __init__(self, syntax: CallSyntax, starts: Sequence[str]) -> None:
        self.syntax: CallSyntax = syntax
        self.ends: TagSearch = TagSearch(syntax.ends)
        self.ends_or_starts: TagSearch = TagSearch([*syntax.ends, *starts])
        self.after_name: TagSearch = TagSearch(
            [tag for tag in (syntax.name_end, syntax.call_id) if tag]
        )
        self.separator_is_json: bool = begins_rest(syntax.separator or "")
        self.form: CallForm = CallForm(
            syntax.spelled("tool_name", "{...}"), has_ids=syntax.call_id is not None
        )
