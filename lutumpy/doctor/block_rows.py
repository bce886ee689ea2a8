"""What an API of blocks does about its calls and results: the stages and rows that all share."""

from __future__ import annotations

from dataclasses import dataclass

from lutumpy.doctor.block_ids import Ids, mend_ids_of, mend_repeats_of
from lutumpy.doctor.block_order import mend_calls_last_of, mend_order_of, mend_reasoning_first_of
from lutumpy.doctor.block_pairing import Pairing, mend_pairing_of, mend_speakers_of
from lutumpy.doctor.catalogue import Mending, Step, all_at_once

__all__ = ["CallRows", "call_rows"]


@dataclass(frozen=True, slots=True)
class CallRows:
    """Steps and rows for the rules on calls and results, made for one API.

    Attributes:
        speakers: The step for what only the model says, in another message.
        pairing: The step that brings results to their calls.
        ids: The step for ids that the API refuses.
        calls_last: The step for text behind calls.
        reasoning_first: The step for reasoning behind a text.
        refused_id: The row of the rule on the ids of calls.
        shared_id: That of ids that calls of one answer share.
        reused_id: That of ids that calls of several answers share.
        open_call: That of calls without results.
        loose_result: That of results without calls.
        second_result: That of second results.
        result_order: That of the order of results.
    """

    speakers: Step
    pairing: Step
    ids: Step
    calls_last: Step
    reasoning_first: Step
    refused_id: Mending
    shared_id: Mending
    reused_id: Mending
    open_call: Mending
    loose_result: Mending
    second_result: Mending
    result_order: Mending


def call_rows(pairing: Pairing, ids: Ids, reasoning: tuple[str, ...]) -> CallRows:
    """The steps and rows of one API.

    Args:
        pairing: What the repairs of pairing need to know of it.
        ids: What those of ids need to know.
        reasoning: The kinds of blocks that are reasoning.
    """
    pair = all_at_once("pairing", mend_pairing_of(pairing))
    mend_ids = all_at_once("call ids", mend_ids_of(ids))
    mend_repeats = mend_repeats_of(ids)
    return CallRows(
        speakers=all_at_once("speakers", mend_speakers_of(pairing)),
        pairing=pair,
        ids=mend_ids,
        calls_last=all_at_once("calls last", mend_calls_last_of(pairing.wire)),
        reasoning_first=all_at_once(
            "reasoning first", mend_reasoning_first_of(pairing.wire, reasoning)
        ),
        refused_id=Mending(mend_ids, repairs=("replace_id", "match_result", "drop_result")),
        shared_id=Mending(all_at_once("repeated ids", mend_repeats), repairs=("rename_id",)),
        reused_id=Mending(all_at_once("reused ids", mend_repeats), repairs=("rename_id",)),
        open_call=Mending(pair, repairs=("close_call", "move_result")),
        loose_result=Mending(pair, repairs=("move_result", "drop_result")),
        second_result=Mending(pair, repairs=("drop_result",)),
        result_order=Mending(
            all_at_once("order", mend_order_of(pairing.wire)), repairs=("move_result",)
        ),
    )
