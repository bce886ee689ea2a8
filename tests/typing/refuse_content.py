"""Each line marked `# refused` is an error for mypy --strict and pyright; no other line is.

Nothing of it is run.
"""

from lutumpy import RawPart, Session, ToolError


def parts(session: Session, part: RawPart) -> None:
    RawPart("anthropic_messages")  # refused
    RawPart("anthropic_messages", [])  # refused
    RawPart("anthropic_messages", {1: 2})  # refused
    RawPart("anthropic_messages", {}, text=3)  # refused
    part.text = "other"  # refused
    part.value = {}  # refused
    session.push_user([{"type": "text", "text": "x"}])  # refused


def failures() -> None:
    ToolError("used up", {"limit": 100}, contents=3)  # refused
