"""Parts for one API alone, and failures with content.

Both checkers accept it; nothing is run.
"""

from typing import Any

from typing_extensions import assert_type

from lutumpy import (
    ImagePart,
    RawPart,
    Session,
    TextPart,
    ToolCall,
    ToolCallIssue,
    ToolError,
    ToolResult,
    tool_fn,
)
from lutumpy.models import Part


def parts(session: Session) -> tuple[Part, ...]:
    found = RawPart("anthropic_messages", {"type": "tool_reference", "tool_name": "x"}, text="x")
    assert_type(found.text, str)
    assert_type(found.data, bytes)
    assert_type(found.value, dict[str, Any])
    session.push_user(["see", found])
    return TextPart("found"), found


@tool_fn
def search(query: str) -> list[TextPart | RawPart]:
    """Search."""
    return [TextPart(query), RawPart("anthropic_messages", {"type": "text", "text": query})]


class QuotaError(ToolError):
    pass


def failures(call: ToolCall[Any, Any], issue: ToolCallIssue) -> list[ToolResult]:
    error = ToolError("used up", content={"limit": 100})
    assert_type(error.content, Any)
    return [
        call.fail(error),
        call.fail(QuotaError("used up", content=[ImagePart(url="https://x.org/a.png")])),
        call.fail("used up", content=[1, None], reveal=True),
        issue.fail("unknown", content={"known": ["search"]}),
    ]
