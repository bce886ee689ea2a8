"""What Chat Completions and Responses write alike: ids of calls, times, and the envelope of an
error.
"""

from __future__ import annotations

from typing import Any

from lutumpy.testing.replies import Call

__all__ = ["CREATED", "call_id", "render_failure", "written"]

CREATED = 1_767_225_600
"""When the first answer was made, in seconds since 1970; the others follow second by second."""


def call_id(call: Call, number: int, index: int) -> str:
    """The id of a call: its own, or one counted from the number of the answer and the call's place
    in it.
    """
    return call.id if call.id is not None else f"call_{number:016d}{index:08d}"


def written(call: Call) -> str:
    """What the model wrote for a call: free text, or the text of a JSON object."""
    return str(call.arguments) if call.is_text else call.text


def render_failure(
    status: int, message: str, *, kind: str, param: str | None, code: str | None, request_id: str
) -> dict[str, Any]:
    """The JSON of an error; the id of the request is in a header alone."""
    if not kind:
        kind, code = _usual_kind(status, code)
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _usual_kind(status: int, code: str | None) -> tuple[str, str | None]:
    if status == 429:
        return "requests", code or "rate_limit_exceeded"
    return "server_error" if status >= 500 else "invalid_request_error", code
