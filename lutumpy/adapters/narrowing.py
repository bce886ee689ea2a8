"""Tools that stay declared while the choice of a request says which of them may be called (PB7):
for APIs whose entries say nothing of settings.
"""

from __future__ import annotations

from lutumpy.adapters.encoded_settings import NOTHING_TO_SAY, Carried, EncodedSettings
from lutumpy.adapters.prepared import SettingsEncoder, prepare
from lutumpy.adapters.request_record import RequestRecord
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.core.turn_settings import TurnSettings

__all__ = ["CHOICE", "ChoiceSpelling", "declared_tools"]


class ChoiceSpelling:
    """The words of an API that narrows by the choice of a request and says nothing else.

    Attributes:
        says_effort: Never: it is a field.
        default_effort: None, since no effort is said.
        says_output: Never: the format is a field, too.
        keeps_withdrawn: Tools that aren't offered stay declared: the choice leaves them out.
        defers: No tool is kept out of the prompt.
        appends_deferred: Never, for the same reason.
        chooses_appended: Never: no entry brings a tool.
    """

    __slots__ = (
        "appends_deferred",
        "chooses_appended",
        "default_effort",
        "defers",
        "keeps_withdrawn",
        "says_effort",
        "says_output",
    )

    def __init__(self) -> None:
        self.says_effort: bool = False
        self.default_effort: str | None = None
        self.says_output: bool = False
        self.keeps_withdrawn: bool = True
        self.appends_deferred: bool = False
        self.defers: bool = False
        self.chooses_appended: bool = False

    def carry(self, settings: TurnSettings, state: EncodedSettings) -> Carried | None:
        """Nothing where the choice says it; `None` where the tools are others than those of the
        base.
        """
        if settings.defined:
            return None
        known = () if state.base is None else state.base.specs
        declared = {spec.name for spec in known}
        return NOTHING_TO_SAY if declared.issuperset(settings.added) else None

    def withdraw(self, names: tuple[str, ...]) -> Carried:
        """Nothing has to be said: the choice of the request leaves them out."""
        return NOTHING_TO_SAY

    def bound_form(self, entry: bytes) -> bytes:
        """The entry as it is: no reasoning is bound to it."""
        return entry

    def needs_record(self, model: str | None) -> bool:
        """None is known to."""
        return False

    def may_read(self, model: str | None) -> bool:
        """Nothing is known to be refused."""
        return True


CHOICE = ChoiceSpelling()


def declared_tools(
    encoder: SettingsEncoder,
    transcript: Transcript,
    offer: ToolOffering | None,
    record: RequestRecord,
) -> tuple[ToolOffering | None, EncodedSettings]:
    """The tools that a request declares, and what its entries say of settings; what the request
    says anew is noted in the record.

    Args:
        encoder: The encoded conversation.
        transcript: What it is of.
        offer: What the model may call in this turn.
        record: What the request says anew; it is filled in.
    """
    state = encoder.state
    in_force, base = state.in_force, state.base
    if offer is in_force.same_as and record.output is in_force.output and base is not None:
        # A turn that changes nothing enters no function.
        is_own = offer is not None and offer.specs is base.specs
        if is_own and record.effort == in_force.effort:
            return offer, state
    prepared = prepare(encoder, transcript, offer, record)
    return prepared.declared, prepared.encoder.state
