"""For who writes the rules of an API: what makes a problem, and what the rules of all APIs share.

How an API's requests are laid out is said with `lutumpy.rules.shape`. An API whose messages hold
lists of blocks says with a `BlockWire` where calls and results are; one whose reasoning is bound
to what comes before it says with a `ReasoningBinding` what that is.
"""

from __future__ import annotations

from lutumpy.rules.block_wire import BlockWire, Lens, Placed, Turn, join_turns, place_of
from lutumpy.rules.bound_blocks import BoundBlock, Enforcement, ReasoningBinding, write_bound
from lutumpy.rules.catalogue import Rule, rules_by_id
from lutumpy.rules.declared import undeclared
from lutumpy.rules.encoding import EncodingWords, check_encoding
from lutumpy.rules.media import image_type, plain_type, type_of_bytes
from lutumpy.rules.problem import about, is_array, is_number, items, mapping, text
from lutumpy.rules.tool_settings import ToolSettingRules
from lutumpy.rules.written_out import written_out

__all__ = [
    "BlockWire",
    "BoundBlock",
    "EncodingWords",
    "Enforcement",
    "Lens",
    "Placed",
    "ReasoningBinding",
    "Rule",
    "ToolSettingRules",
    "Turn",
    "about",
    "check_encoding",
    "image_type",
    "is_array",
    "is_number",
    "items",
    "join_turns",
    "mapping",
    "place_of",
    "plain_type",
    "rules_by_id",
    "text",
    "type_of_bytes",
    "undeclared",
    "write_bound",
    "written_out",
]
