"""Runs of a durable loop in a browser: their log as the streams that front ends read.

Pure functions from events to bytes; nothing here needs a package. `lutumpy.web.starlette` has
routes, and needs the extra `web`.
"""

from lutumpy.web.ag_ui import AGUIStream, ag_ui_messages
from lutumpy.web.ai_sdk import AISDKStream, ui_messages
from lutumpy.web.frames import Frame
from lutumpy.web.hub import EventHub
from lutumpy.web.inbound import (
    ApprovalAnswer,
    Inbound,
    NewFile,
    NewMessage,
    QuestionAnswer,
    WebError,
    read_ag_ui,
    read_ai_sdk,
    read_answers,
)
from lutumpy.web.live import LiveLog
from lutumpy.web.show import Show, ShowTool
from lutumpy.web.sse import EventSource
from lutumpy.web.view import View

__all__ = [
    "AGUIStream",
    "AISDKStream",
    "ApprovalAnswer",
    "EventHub",
    "EventSource",
    "Frame",
    "Inbound",
    "LiveLog",
    "NewFile",
    "NewMessage",
    "QuestionAnswer",
    "Show",
    "ShowTool",
    "View",
    "WebError",
    "ag_ui_messages",
    "read_ag_ui",
    "read_ai_sdk",
    "read_answers",
    "ui_messages",
]
