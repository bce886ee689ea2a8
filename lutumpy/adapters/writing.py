"""For who writes the adapter of an API: a model over HTTP, and what all adapters share.

An adapter whose API has no SDK derives from `HttpModel`, which sends through an `HttpTransport`: it
keeps connections, tries again as the SDKs do, and reads streams. `HistoryReading` is for the reader
of its histories.
"""

from __future__ import annotations

from lutumpy.adapters.http_model import HttpModel
from lutumpy.adapters.http_transport import HttpTransport, StreamFormat
from lutumpy.adapters.object_arguments import UnparsedInput, arguments_object, read_arguments
from lutumpy.adapters.provider_errors import early_end, error_body
from lutumpy.adapters.read_settings import (
    ChangeReading,
    ReadTool,
    SettingsReader,
    no_changes,
    read_settings,
)
from lutumpy.adapters.reading import (
    Entry,
    HistoryReading,
    image_part,
    result_content,
    status_of,
    text_only,
)
from lutumpy.adapters.replies import reply_object, without_nulls
from lutumpy.adapters.request_options import request_options
from lutumpy.adapters.request_record import NO_REWRITES, RequestRecord
from lutumpy.adapters.sdk_body import (
    Fields,
    add_extra,
    body_dict,
    checked_offer,
    checked_transcript,
    history_list,
)
from lutumpy.adapters.sdk_model import RequestDefaults
from lutumpy.adapters.sdk_stream import event_object
from lutumpy.adapters.settings_keeper import record_settings
from lutumpy.adapters.tool_lists import copy_nested_tools, listed_tools, refuse_tools
from lutumpy.adapters.tool_settings import settings_of
from lutumpy.adapters.unknown_calls import (
    UnknownCalls,
    calls_in_fields,
    deltas_of_waiting,
    unknown_call,
    wanted_by,
)
from lutumpy.core.items import describe
from lutumpy.core.parts import raw_value, sendable, shown_heading
from lutumpy.core.tool_specs import SEARCH_CALL
from lutumpy.core.turn_settings import SettingsInForce
from lutumpy.core.usage import token_count
from lutumpy.plain.json_values import (
    clean_text,
    copied,
    decode,
    encode,
    encode_text,
    hold_half,
    holds_non_finite,
    parse_arguments,
)

__all__ = [
    "NO_REWRITES",
    "SEARCH_CALL",
    "ChangeReading",
    "Entry",
    "Fields",
    "HistoryReading",
    "HttpModel",
    "HttpTransport",
    "ReadTool",
    "RequestDefaults",
    "RequestRecord",
    "SettingsInForce",
    "SettingsReader",
    "StreamFormat",
    "UnknownCalls",
    "UnparsedInput",
    "add_extra",
    "arguments_object",
    "body_dict",
    "calls_in_fields",
    "checked_offer",
    "checked_transcript",
    "clean_text",
    "copied",
    "copy_nested_tools",
    "decode",
    "deltas_of_waiting",
    "describe",
    "early_end",
    "encode",
    "encode_text",
    "error_body",
    "event_object",
    "history_list",
    "hold_half",
    "holds_non_finite",
    "image_part",
    "listed_tools",
    "no_changes",
    "parse_arguments",
    "raw_value",
    "read_arguments",
    "read_settings",
    "record_settings",
    "refuse_tools",
    "reply_object",
    "request_options",
    "result_content",
    "sendable",
    "settings_of",
    "shown_heading",
    "status_of",
    "text_only",
    "token_count",
    "unknown_call",
    "wanted_by",
    "without_nulls",
]
