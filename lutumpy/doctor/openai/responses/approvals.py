"""Repairs of Responses: requests for approval and the responses to them."""

# A request without a response was asked and never answered, so it is refused: approving it would
# let the provider make a call that nobody agreed to. The refusal goes behind the items that the
# model wrote, so that parallel calls stay together.

from __future__ import annotations

from lutumpy.doctor.editor import Editor
from lutumpy.doctor.mending import drop_entry
from lutumpy.doctor.openai.responses.kinds import is_by_model
from lutumpy.errors import Problem

__all__ = ["mend_approvals"]

UNANSWERED = "The request was never answered, so the call was not made."
"""The reason in a response that refuses a request which nobody answered."""


def mend_approvals(editor: Editor, problems: list[Problem]) -> None:
    """A request without a response is refused; a response without its request goes."""
    for problem in problems:
        path = problem.path[:1]
        if problem.rule == "responses.request_for_approval":
            reason = "The response names a request that isn't there; it is left out."
            drop_entry(editor, path, problem, "drop_result", reason)
            continue
        slot = int(path[0])
        while slot < len(editor.document) and is_by_model(editor.document[slot]):
            slot += 1
        editor.expect_keys(path, "type", "id")
        refusal = {
            "type": "mcp_approval_response",
            "approval_request_id": problem.call_ids[0],
            "approve": False,
            "reason": UNANSWERED,
        }
        editor.insert((slot,), refusal)
        reason = (
            "The request for approval has no response, but the API requires one; it is refused."
        )
        editor.done("close_call", problem, reason)
