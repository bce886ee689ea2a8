"""Which signed reasoning of an encoded conversation still comes after what it was signed over
(rules PB8 and PB9).
"""

# What is hard here
# -----------------
# Newer models bind their reasoning to all that was sent before it, and refuse it behind anything
# else. So each turn with signed reasoning keeps a digest of what the request held before it
# (`TurnOrigin.prefix`), and a request sends reasoning only behind an equal digest. Behind the first
# digest that differs all reasoning stays out, since later reasoning was made knowing the earlier.
#
#   entries   e0   e1   e2   e3 ...            what an encoder has encoded, append-only
#   chain   c0 = h()  c1 = h(c0 e0)  c2 = h(c1 e1) ...
#   digest of the prefix before entry k = h(beginning of the request, ck)
#
# Reasoning and marks of the prompt cache aren't bound, so they are taken out of an entry before it
# is hashed: only its encoder knows how (`bound_form`). All of this is worked out when it is first
# needed. A conversation without signed reasoning never hashes anything, and one whose beginning
# stays the same looks at each signed turn once.

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from lutumpy.core.items import AssistantTurn
from lutumpy.plain.json_values import decode

__all__ = ["BoundReasoning", "SignedTurn"]

BoundForm: TypeAlias = Callable[[bytes], bytes]

_NEVER = ""  # the digest of no prefix

_IDS = re.compile(rb'"id":("(?:[^"\\]|\\.)*")')


class SignedTurn:
    """A turn with signed reasoning among the entries of an encoder.

    Attributes:
        entry: The index of its first entry.
        turn: Its index among the turns of the transcript.
        prefix: The digest that its reasoning was signed over; `None` where that isn't known, as for
            a history that was read.
        is_left_out: Whether its reasoning is left out of every request.
        is_reported: Whether the record of a later turn says so.
        said: The turn itself.
    """

    __slots__ = ("entry", "is_left_out", "is_reported", "prefix", "said", "turn")

    def __init__(
        self, entry: int, turn: int, prefix: str | None, said: AssistantTurn, is_left_out: bool
    ) -> None:
        self.entry: int = entry
        self.said: AssistantTurn = said
        self.turn: int = turn
        self.prefix: str | None = prefix
        self.is_left_out: bool = is_left_out
        self.is_reported: bool = False

    def copy(self) -> SignedTurn:
        twin = SignedTurn(self.entry, self.turn, self.prefix, self.said, self.is_left_out)
        twin.is_reported = self.is_reported
        return twin


class BoundReasoning:
    """The signed turns of one encoder, and the digests of what comes before its entries.

    Args:
        bound_form: Takes from one entry what no reasoning is bound to.

    Attributes:
        signed: The turns with signed reasoning, in order.
        has_unknown: Whether nobody knows what the reasoning of some of them was signed over.
    """

    __slots__ = ("_bound_form", "_chain", "_fits", "has_unknown", "signed")

    def __init__(self, bound_form: BoundForm) -> None:
        self._bound_form = bound_form
        self._chain: list[bytes] = [b""]
        # The beginning of a request, and how many of the first signed turns are known to fit it.
        self._fits: tuple[bytes, int] = (b"", 0)
        self.signed: list[SignedTurn] = []
        self.has_unknown: bool = False

    def copy(self) -> BoundReasoning:
        twin = BoundReasoning(self._bound_form)
        twin._chain, twin._fits = self._chain.copy(), self._fits
        twin.has_unknown = self.has_unknown
        twin.signed = [turn.copy() for turn in self.signed]
        return twin

    def add(
        self,
        entry: int,
        turn: int,
        prefix: str | None,
        said: AssistantTurn,
        *,
        is_left_out: bool = False,
    ) -> None:
        """Note a turn with signed reasoning.

        Args:
            entry: Its first entry, or the one that follows where it has none.
            turn: Its index among the turns of the transcript.
            prefix: The digest that its reasoning was signed over, where that is known.
            said: The turn itself.
            is_left_out: Its reasoning was dropped together with what it was signed over (rule S4).
        """
        self.signed.append(SignedTurn(entry, turn, prefix, said, is_left_out))
        if prefix is None and not is_left_out:
            self.has_unknown = True

    def forget_from(self, entry: int) -> None:
        """Entries from this one on have been changed: their digests are worked out again."""
        del self._chain[entry + 1 :]
        if self.signed and self.signed[-1].entry > entry:
            self._fits = (b"", 0)

    def spoil_unknown(self, entry: int) -> None:
        """Entries from this one on aren't any more what they were: reasoning behind it, of which
        nobody knows what it was signed over, doesn't fit there.
        """
        self._fits = (b"", 0)
        for turn in self.signed:
            if turn.prefix is None and turn.entry >= entry:
                turn.prefix = _NEVER

    def digest(self, beginning: bytes, entries: Sequence[bytes], kept: int) -> str:
        """The digest of a prefix: of a request's beginning and all these entries.

        Args:
            beginning: What the request holds before its entries, without marks of the cache.
            entries: The entries of the prefix.
            kept: How many of them the encoder has encoded for good; what comes after is hashed
                each time.
        """
        kept = min(kept, len(entries))
        found = self._chain_at(entries, kept)
        for entry in entries[kept:]:
            found = _sha256(found, self._bound_form(entry))
        return _sha256(beginning, found).hex()

    def first_misfit(self, beginning: bytes, entries: Sequence[bytes]) -> int | None:
        """The first signed turn whose reasoning doesn't fit behind this beginning, as an index into
        `signed`; `None` if all of it fits.

        Turns whose digest isn't known fit wherever the others do (rule PB18).
        """
        known, count = self._fits
        start = count if known == beginning else 0
        for index in range(start, len(self.signed)):
            turn = self.signed[index]
            if turn.is_left_out or turn.prefix is None:
                continue
            found = _sha256(beginning, self._chain_at(entries, turn.entry)).hex()
            if found != turn.prefix:
                return index
        self._fits = beginning, len(self.signed)
        return None

    def turns_by_id(self, entries: Sequence[bytes]) -> dict[int | str, int]:
        """The turns among these entries, by the ids of their items."""
        found: dict[int | str, int] = {}
        for turn in self.signed:
            if turn.entry < len(entries):
                for item_id in _IDS.findall(entries[turn.entry]):
                    found.setdefault(decode(item_id), turn.turn)
        return found

    def leave_out_from(
        self, turn: int, might_have: Callable[[AssistantTurn], bool] | None = None
    ) -> list[SignedTurn]:
        """Leave the reasoning of a turn and all later ones out of every request from now on.

        Args:
            turn: The first of them, as an index among the turns of the transcript.
            might_have: Whether the request that left it out might have had the reasoning of a turn:
                where it might not, that stays. All of it, if omitted.

        Returns:
            Those of them that still had theirs.
        """
        found: list[SignedTurn] = []
        for signed in self.signed:
            if signed.turn < turn:
                continue
            if signed.is_left_out:
                signed.is_reported = True
            elif might_have is None or might_have(signed.said):
                signed.is_left_out = signed.is_reported = True
                found.append(signed)
        return found

    def newly_left_out(self) -> list[SignedTurn]:
        """The turns whose reasoning was dropped and that no report of a request has named yet, in
        order.

        Only the last turns are looked at: one that has its reasoning was answered after the drop
        had been reported.
        """
        found: list[SignedTurn] = []
        for turn in reversed(self.signed):
            if not turn.is_left_out:
                break
            if not turn.is_reported:
                found.insert(0, turn)
        return found

    def _chain_at(self, entries: Sequence[bytes], count: int) -> bytes:
        chain = self._chain
        for index in range(len(chain) - 1, count):
            chain.append(_sha256(chain[-1], self._bound_form(entries[index])))
        return chain[count]


def _sha256(*pieces: bytes) -> bytes:
    import hashlib  # rare, and slow to import

    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(b"%d:" % len(piece))
        digest.update(piece)
    return digest.digest()
