"""What is known of a rule beside the check itself: what it requires, and how sure a refusal is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lutumpy.errors import Certainty

__all__ = ["Rule", "rules_by_id"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule about histories: one row of an API's table.

    Attributes:
        id: Its id, as `chat.role`. It never changes.
        requires: What it requires, in a sentence for users.
        certainties: How sure a refusal is; several where that depends on the case or the host.
        vendor_only: Other hosts than the vendor are known, or likely, to accept what breaks it.
    """

    id: str
    requires: str
    certainties: tuple[Certainty, ...]
    vendor_only: bool = False


def rules_by_id(*rules: Rule) -> Mapping[str, Rule]:
    """The rows of a table by the id of their rule, in their order.

    Raises:
        ValueError: two rows have one id.
    """
    found = {rule.id: rule for rule in rules}
    if len(found) != len(rules):
        raise ValueError("a rule stands twice in its table")
    return found
