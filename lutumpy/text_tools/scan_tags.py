"""What a parser looks for in a text: the tags of its syntaxes, and what each of them begins."""

from __future__ import annotations

from collections.abc import Sequence

from lutumpy.text_tools.block import Block
from lutumpy.text_tools.block_tags import BlockTags
from lutumpy.text_tools.body_block import BodyBlock, BodyTags
from lutumpy.text_tools.body_syntax import BodySyntax
from lutumpy.text_tools.harmony_syntax import HarmonyBlock, HarmonySyntax
from lutumpy.text_tools.open_block import OpenBlock
from lutumpy.text_tools.schema_values import KnownTools
from lutumpy.text_tools.syntax import CallSyntax
from lutumpy.text_tools.tag_search import TagSearch, check_distinct

__all__ = ["ScanTags", "Syntax", "syntaxes_for"]

Syntax = CallSyntax | BodySyntax
"""How calls are written."""


class ScanTags:
    """What a parser looks for in a text.

    Args:
        syntaxes: How calls are written.
        thinking: Pairs of texts around thinking, in which nothing is a call.
        tools: The tools of the offer, where they are known.

    Raises:
        ValueError: tags can't be told apart.
    """

    __slots__ = (
        "bare",
        "blocks",
        "hidden",
        "in_fence",
        "in_info",
        "in_text",
        "opened",
        "think_ends",
        "thinking",
        "tools",
    )

    def __init__(
        self,
        syntaxes: Sequence[Syntax],
        thinking: Sequence[tuple[str, str]],
        tools: KnownTools | None = None,
    ) -> None:
        self.tools: KnownTools = tools or {}
        found = [one for syntax in syntaxes for one in syntaxes_for(syntax, self.tools)]
        tagged = [syntax for syntax in found if syntax.start]
        starts = [syntax.start for syntax in tagged]
        # Texts around blocks: left out wherever a start tag would count.
        hidden = dict.fromkeys([tag for syntax in found for tag in syntax.around])
        # The end tags of a `BodySyntax` are looked for in its own blocks, and nothing else is.
        ends = [end for syntax in tagged if isinstance(syntax, CallSyntax) for end in syntax.ends]
        check_distinct([*starts, *hidden, *[begin for begin, _ in thinking]], ends)
        self.bare: tuple[BodySyntax, ...] = tuple(
            [one for one in found if isinstance(one, BodySyntax) and not one.start]
        )
        # The syntax whose start tag may be the end of the prompt.
        self.opened: CallSyntax | None = next(
            (one for one in tagged if isinstance(one, CallSyntax) and one.opened), None
        )
        self.hidden: frozenset[str] = frozenset(hidden)
        self.blocks: dict[str, BlockTags | BodyTags] = {
            s.start: BodyTags(s, self.tools) if isinstance(s, BodySyntax) else BlockTags(s, starts)
            for s in tagged
        }
        self.thinking: dict[str, str] = dict(thinking)
        self.think_ends: dict[str, TagSearch] = {
            end: TagSearch([end]) for end in (*self.thinking.values(), *hidden)
        }
        seen = [*starts, *hidden]
        self.in_text: TagSearch = TagSearch([*seen, *self.thinking], r"`{3,}|~{3,}|`+\Z|~+\Z")
        self.in_info: TagSearch = TagSearch(starts, "\n|`+|~+")
        self.in_fence: TagSearch = TagSearch(seen)

    def open_block(self, tag: str, *, quoted: bool) -> OpenBlock:
        """A new block that this start tag begins."""
        tags = self.blocks[tag]
        if isinstance(tags, BlockTags):
            return Block(tags, quoted=quoted)
        if isinstance(tags.syntax, HarmonySyntax):
            return HarmonyBlock(tags, quoted=quoted)
        return BodyBlock(tags, quoted=quoted)


def syntaxes_for(syntax: Syntax, tools: KnownTools) -> Sequence[Syntax]:
    """A syntax for an offer: several where its tags are made of the tools' names."""
    return syntax.for_offer(tools) if isinstance(syntax, BodySyntax) else [syntax]
