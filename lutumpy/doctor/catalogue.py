"""Every rule about a transcript in one table: what it asks, how sure a refusal is, what mends a breach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lutumpy.doctor.repair import RepairKind
from lutumpy.errors import Certainty

__all__ = ["KINDS", "RULES", "TranscriptRule"]


@dataclass(frozen=True, slots=True)
class TranscriptRule:
    """A rule about transcripts.

    Attributes:
        what: What it asks.
        certainties: How sure a refusal is; more than one where that depends on the case or the host.
        repairs: What may mend a breach; empty where it takes a decision of the program's.
        left: Which breaches get no repair, and why; empty where all that are refused for sure do.
    """

    what: str
    certainties: tuple[Certainty, ...]
    repairs: tuple[RepairKind, ...] = ()
    left: str = ""


RULES: Mapping[str, TranscriptRule] = {
    "chat.nesting": TranscriptRule(
        "A message is nested at most 300 levels deep", ("some",), ("set_content",)
    ),
    "chat.encoding": TranscriptRule(
        "Text is whole characters and every value is one that JSON knows",
        ("refused", "some"),
        ("replace_characters",),
    ),
    "chat.messages": TranscriptRule(
        "The messages are a list of objects, and at least one",
        ("refused",),
        ("drop_empty", "move_message"),
        "a text or a number among the messages doesn't say whose it is; a list without messages says nothing",
    ),
    "chat.role": TranscriptRule(
        "Each message has a role, one of six",
        ("refused",),
        ("set_role", "convert_message", "drop_reasoning"),
        "neither the name nor the content shows the role",
    ),
    "chat.role_for_model": TranscriptRule(
        "The first reasoning models take no system and no developer message",
        ("refused",),
        ("set_role",),
    ),
    "chat.content": TranscriptRule(
        "Every message has content; an assistant's may lack it beside calls or a refusal",
        ("refused", "some"),
        ("drop_empty", "set_content", "convert_message", "drop_reasoning"),
        "the only message, if it says nothing",
    ),
    "chat.parts": TranscriptRule(
        "Parts of content are of a type that the role takes; only a user shows images, sounds and files",
        ("refused", "some"),
        ("drop_empty", "set_content", "move_content", "convert_message", "drop_reasoning"),
        "parts of a type that nobody knows, or without what they should hold: the program has to show it another way",
    ),
    "chat.audio_for_model": TranscriptRule(
        "Sound is for models that hear",
        ("refused",),
        left="another model hears it, or its words have to be written down",
    ),
    "chat.audio_format": TranscriptRule(
        "A sound is WAV or MP3",
        ("refused", "some"),
        left="the sound has to be converted, and only the program can do that",
    ),
    "chat.image_type": TranscriptRule(
        "An image is JPEG, PNG, GIF or WebP, by its name or its bytes",
        ("refused", "some"),
        ("set_content",),
        "what has to be converted first",
    ),
    "chat.file_data": TranscriptRule(
        "A file is a PDF; the text of another is text",
        ("refused", "some"),
        ("set_content",),
        "what has to be converted first, or written down",
    ),
    "chat.part_length": TranscriptRule(
        "A text has at most 10,485,760 characters, an image and a file what Responses takes",
        ("some",),
        left="what may be cut, only the program knows",
    ),
    "chat.tool_calls": TranscriptRule(
        "`tool_calls` is a list of 1 to 128 calls, each a function or custom",
        ("refused",),
        ("drop_call", "drop_key", "set_field", "move_call", "convert_message"),
    ),
    "chat.call_id": TranscriptRule(
        "A call's id is a text of up to 40 characters, not empty",
        ("refused", "some"),
        ("replace_id",),
    ),
    "chat.call_name": TranscriptRule(
        "A call's name is 1 to 64 letters, digits, `_` and `-`",
        ("refused", "some"),
        ("rename_tool",),
    ),
    "chat.arguments": TranscriptRule(
        "A call's arguments are a text", ("refused",), ("wrap_arguments",)
    ),
    "chat.arguments_json": TranscriptRule(
        "The arguments are a JSON object", ("discouraged",), ("wrap_arguments",)
    ),
    "chat.arguments_length": TranscriptRule(
        "The arguments are no longer than 1,048,576 characters", ("some",), ("wrap_arguments",)
    ),
    "chat.tool_call_id": TranscriptRule(
        "A result says which call it answers",
        ("refused",),
        ("match_result", "drop_result", "convert_message"),
    ),
    "chat.results_after_calls": TranscriptRule(
        "Each call is answered in the messages right behind it, before any other",
        ("refused",),
        ("close_call", "move_result", "drop_duplicate"),
    ),
    "chat.result_without_calls": TranscriptRule(
        "A result stands behind a message with calls", ("refused",), ("move_result", "drop_result")
    ),
    "chat.unknown_call_id": TranscriptRule(
        "A result answers a call of that message", ("refused",), ("move_result", "drop_result")
    ),
    "chat.duplicate_result": TranscriptRule(
        "A call has one result", ("refused",), ("drop_result",)
    ),
    "chat.duplicate_call_id": TranscriptRule(
        "Calls of one message have ids of their own", ("some",), ("rename_id",)
    ),
    "chat.reused_call_id": TranscriptRule(
        "No later message uses the id again", ("discouraged",), ("rename_id",)
    ),
    "chat.result_order": TranscriptRule(
        "Results keep the order of their calls", ("discouraged",), ("move_result",)
    ),
    "chat.tool_declared": TranscriptRule(
        "Tools that were called are still declared",
        ("discouraged",),
        left="the request's `tools` are yours, and the messages don't show what was meant to be declared",
    ),
    "responses.nesting": TranscriptRule(
        "A message is nested at most 300 levels deep", ("some",), ("set_content",)
    ),
    "responses.encoding": TranscriptRule(
        "Text is whole characters and every value is one that JSON knows",
        ("refused", "some"),
        ("replace_characters",),
    ),
    "responses.input": TranscriptRule(
        "The input is a text or a list of objects that say what they are",
        ("refused",),
        (
            "set_field",
            "drop_reference",
            "drop_empty",
            "move_message",
            "convert_message",
            "set_role",
        ),
        "an entry whose keys don't show what it is",
    ),
    "responses.item_type": TranscriptRule(
        "Items are of a type that the API takes",
        ("refused", "some"),
        (
            "convert_message",
            "drop_reasoning",
        ),
        left="nothing shows what an item of an unknown type was to say",
    ),
    "responses.item_keys": TranscriptRule(
        "Messages, calls, outputs and reasoning have no keys but their own",
        ("refused", "some"),
        ("drop_key", "convert_message", "set_role"),
    ),
    "responses.item_id": TranscriptRule(
        "An item's id has the prefix of its type and up to 64 characters",
        ("refused", "some"),
        ("drop_id", "drop_reasoning"),
    ),
    "responses.duplicate_item": TranscriptRule(
        "No item comes twice", ("refused", "some"), ("drop_duplicate", "drop_id", "drop_reasoning")
    ),
    "responses.role": TranscriptRule(
        "A message's role is assistant, system, developer or user",
        ("refused",),
        ("set_role", "convert_message"),
        "neither the name nor the parts show the role",
    ),
    "responses.content": TranscriptRule(
        "Every message has content",
        ("refused",),
        ("drop_empty", "set_content", "convert_message", "set_role"),
        "the only message, if it says nothing",
    ),
    "responses.parts": TranscriptRule(
        "Parts are of a type that the role takes",
        ("refused", "some"),
        ("drop_empty", "set_content", "convert_message", "drop_reasoning", "move_content"),
        "parts of a type that nobody knows: the program has to show it another way",
    ),
    "responses.image_type": TranscriptRule(
        "An image is JPEG, PNG, GIF or WebP, by its name or its bytes",
        ("refused", "some"),
        ("set_content",),
        "what has to be converted first",
    ),
    "responses.part_length": TranscriptRule(
        "A text has at most 10,485,760 characters, an image 20,971,520 and a file 73,400,320 of its URL",
        ("refused", "some"),
        left="what may be cut, only the program knows",
    ),
    "responses.file_data": TranscriptRule(
        "A file is a document, a sheet, or text; sound, film and images are none",
        ("refused", "some"),
        ("set_content",),
        "what it says has to be written down, or shown to a model that hears it",
    ),
    "responses.file_url": TranscriptRule(
        "Sound and film are no files, by address either",
        ("refused",),
        left="what it says has to be written down, or shown to a model that hears it",
    ),
    "responses.status": TranscriptRule(
        "An item's status is in_progress, completed or incomplete; reasoning has none",
        ("refused", "some"),
        ("drop_key",),
    ),
    "responses.reasoning_summary": TranscriptRule(
        "Reasoning has a list of summaries, also an empty one", ("refused", "some"), ("set_field",)
    ),
    "responses.call_id": TranscriptRule(
        "A `call_id` is a text of 1 to 64 characters",
        ("refused",),
        ("replace_id", "match_result", "drop_result", "convert_message", "set_role"),
    ),
    "responses.call_name": TranscriptRule(
        "A call's name is 1 to 128 letters, digits, `_` and `-`",
        ("refused", "some"),
        ("rename_tool",),
    ),
    "responses.arguments": TranscriptRule(
        "A call's arguments are a text", ("refused",), ("wrap_arguments",)
    ),
    "responses.arguments_json": TranscriptRule(
        "The arguments are JSON", ("discouraged",), ("wrap_arguments",)
    ),
    "responses.arguments_length": TranscriptRule(
        "The arguments are no longer than 1,048,576 characters",
        ("refused", "some"),
        ("wrap_arguments",),
    ),
    "responses.truncated_call": TranscriptRule(
        "A call that was cut off is dropped, not answered",
        ("discouraged",),
        ("drop_call", "drop_result"),
        "a call that can be read may have run, and stays",
    ),
    "responses.output": TranscriptRule(
        "An output is a text of up to 10,485,760 characters, or a list of parts",
        ("refused",),
        ("set_content",),
    ),
    "responses.output_for_call": TranscriptRule(
        "Each call has an output behind it",
        ("refused",),
        ("close_call", "move_result", "drop_call", "set_field"),
    ),
    "responses.call_for_output": TranscriptRule(
        "An output stands behind its call, which the server may hold",
        ("refused",),
        ("move_result", "drop_result"),
    ),
    "responses.duplicate_output": TranscriptRule(
        "A call has one output", ("some",), ("drop_result",)
    ),
    "responses.duplicate_call_id": TranscriptRule(
        "Calls have ids of their own", ("some",), ("rename_id", "drop_duplicate")
    ),
    "responses.interleaved_calls": TranscriptRule(
        "Parallel calls stand side by side", ("some",), ("move_result",)
    ),
    "responses.dangling_reasoning": TranscriptRule(
        "Reasoning comes with the item that it led to, a message by its id",
        ("refused", "some"),
        ("drop_reasoning",),
    ),
    "responses.required_reasoning": TranscriptRule(
        "An item sent by its id comes with its reasoning (known to a server only)",
        ("refused",),
        left="only the server knows what it gave out",
    ),
    "responses.tool_declared": TranscriptRule(
        "Tools that were called are still declared",
        ("discouraged",),
        left="the request's `tools` are yours, and the messages don't show what was meant to be declared",
    ),
    "anthropic.nesting": TranscriptRule(
        "A message is nested at most 300 levels deep", ("some",), ("set_content",)
    ),
    "anthropic.encoding": TranscriptRule(
        "Text is whole characters and every value is one that JSON knows",
        ("refused",),
        ("replace_characters",),
    ),
    "anthropic.messages": TranscriptRule(
        "The messages are a list of objects with role and content, and at least one",
        ("refused",),
        ("drop_key", "drop_empty", "move_message", "convert_message", "drop_reasoning"),
        "a text or a number among the messages doesn't say whose it is; a list without messages says nothing",
    ),
    "anthropic.role": TranscriptRule(
        "A role is user, assistant or system",
        ("refused",),
        ("set_role", "convert_message", "drop_reasoning"),
        "neither the name nor the blocks show the role",
    ),
    "anthropic.system_for_model": TranscriptRule(
        "Models before the 4.6 generation take no system message", ("refused",), ("set_role",)
    ),
    "anthropic.content": TranscriptRule(
        "Content is a text or a list of blocks",
        ("refused",),
        ("drop_empty", "set_content", "convert_message", "drop_reasoning"),
        "the only message, if it says nothing",
    ),
    "anthropic.block": TranscriptRule(
        "Blocks are objects of a known type",
        ("refused",),
        ("drop_empty", "set_content", "convert_message", "drop_reasoning"),
        "blocks of a type that nobody knows: the program has to show it another way",
    ),
    "anthropic.block_keys": TranscriptRule(
        "Text, calls, results and reasoning have no keys but their own", ("refused",), ("drop_key",)
    ),
    "anthropic.text": TranscriptRule(
        "A text block holds a text", ("refused",), ("drop_empty", "set_content")
    ),
    "anthropic.empty_text": TranscriptRule(
        "A text block isn't empty", ("refused",), ("drop_empty",)
    ),
    "anthropic.tool_use_id": TranscriptRule(
        "Ids of calls are letters, digits, `_` and `-`",
        ("refused",),
        ("replace_id", "match_result", "drop_result"),
    ),
    "anthropic.tool_use_name": TranscriptRule(
        "A call's name has 1 to 200 characters", ("refused",), ("rename_tool",)
    ),
    "anthropic.image_type": TranscriptRule(
        "An image is JPEG, PNG, GIF or WebP, and its name says which",
        ("refused",),
        ("set_field",),
        "what has to be converted first",
    ),
    "anthropic.image_size": TranscriptRule(
        "An image has at most 10 MB in base64",
        ("refused",),
        left="the image has to be made smaller, and only the program can do that",
    ),
    "anthropic.document_type": TranscriptRule(
        "A document is a PDF or plain text, and its name says which",
        ("refused",),
        ("set_field", "set_content"),
        "what has to be converted first",
    ),
    "anthropic.document_size": TranscriptRule(
        "A document leaves room in the 32 MB of a request",
        ("refused",),
        left="what may be cut, only the program knows",
    ),
    "anthropic.tool_use_input": TranscriptRule(
        "A call's input is an object", ("refused",), ("wrap_arguments",)
    ),
    "anthropic.server_id": TranscriptRule(
        "Ids of the provider's calls begin with `srvtoolu_`", ("refused",), ("replace_id",)
    ),
    "anthropic.thinking_block": TranscriptRule(
        "A thinking block has its text and signature, a redacted one its data",
        ("refused",),
        ("drop_reasoning",),
    ),
    "anthropic.is_error": TranscriptRule(
        "`is_error` is true or false", ("refused",), ("set_field",)
    ),
    "anthropic.result_content": TranscriptRule(
        "A result's content is a text or a list of blocks", ("refused", "some"), ("set_content",)
    ),
    "anthropic.empty_error": TranscriptRule(
        "A result that is an error says something", ("refused",), ("set_content",)
    ),
    "anthropic.error_content": TranscriptRule(
        "A result that is an error holds text only", ("refused",), ("move_content",)
    ),
    "anthropic.system": TranscriptRule(
        "`system` is a text or a list of text blocks",
        ("refused",),
        left="it isn't in the messages, which repairs are for",
    ),
    "anthropic.cache_control": TranscriptRule(
        "At most four blocks are marked for the cache, each as the API knows it, and none for longer than one before it",
        ("refused", "some"),
        ("drop_key",),
        "marks in `system` and `tools`, which repairs aren't for",
    ),
    "anthropic.system_first": TranscriptRule(
        "A system message isn't the first", ("refused",), ("set_role",)
    ),
    "anthropic.system_position": TranscriptRule(
        "A system message stands before an assistant message or at the end",
        ("refused",),
        ("move_message",),
    ),
    "anthropic.block_role": TranscriptRule(
        "Calls and reasoning stand in assistant messages; results, images and documents in user messages",
        ("refused",),
        ("move_content", "set_role", "move_call", "move_result", "drop_result", "drop_reasoning"),
    ),
    "anthropic.empty_user": TranscriptRule(
        "A user message says something",
        ("refused",),
        ("drop_empty",),
        "the only message, if it says nothing",
    ),
    "anthropic.unique_ids": TranscriptRule(
        "Calls of one message have ids of their own", ("refused",), ("rename_id",)
    ),
    "anthropic.reused_id": TranscriptRule(
        "No later message uses the id again", ("discouraged",), ("rename_id",)
    ),
    "anthropic.results_after_uses": TranscriptRule(
        "Each call is answered in the next message", ("refused",), ("close_call", "move_result")
    ),
    "anthropic.results_first": TranscriptRule(
        "Results come first in that message", ("refused",), ("move_result", "close_call")
    ),
    "anthropic.use_for_result": TranscriptRule(
        "A result answers a call of the message before",
        ("refused",),
        ("move_result", "drop_result"),
    ),
    "anthropic.single_result": TranscriptRule(
        "A call has one result", ("refused",), ("drop_result",)
    ),
    "anthropic.result_order": TranscriptRule(
        "Results keep the order of their calls", ("discouraged",), ("move_result",)
    ),
    "anthropic.uses_last": TranscriptRule(
        "Nothing follows the calls of a message",
        ("some",),
        ("move_content",),
        "signed reasoning and the provider's own calls keep their places",
    ),
    "anthropic.toolset_name": TranscriptRule(
        "A result names the toolset that its call named", ("some",), ("set_field",)
    ),
    "anthropic.use_for_server_result": TranscriptRule(
        "A result of the provider's tool stands behind its call", ("refused",), ("drop_result",)
    ),
    "anthropic.mixed_turn_results_only": TranscriptRule(
        "While the provider's tool runs, nothing but results is said", ("refused",), ("drop_call",)
    ),
    "anthropic.server_result_missing": TranscriptRule(
        "The next answer brings the result of the provider's tool", ("some",), ("drop_call",)
    ),
    "anthropic.server_tool_declared": TranscriptRule(
        "The provider's tool that still runs is declared",
        ("some",),
        left="the request's `tools` are yours, and the messages don't show what was meant to be declared",
    ),
    "anthropic.thinking_first": TranscriptRule(
        "With a thinking budget, the turn that results continue starts with its thinking",
        ("refused", "some"),
        ("move_content",),
        "reasoning that is gone can't be made up: it is signed; send the request without a budget",
    ),
    "anthropic.thinking_last": TranscriptRule(
        "Reasoning isn't the last of a message", ("refused",), ("drop_reasoning",)
    ),
    "anthropic.thinking_disabled": TranscriptRule(
        "Without thinking, the last message holds none", ("refused",), ("drop_reasoning",)
    ),
    "anthropic.thinking_modified": TranscriptRule(
        "Signed reasoning goes back unchanged (known to a server only)",
        ("refused",),
        left="only the server knows what it gave out",
    ),
    "anthropic.prefill": TranscriptRule(
        "Newer models want the user's message last",
        ("refused",),
        left="what the user says next is yours",
    ),
    "anthropic.prefill_whitespace": TranscriptRule(
        "A message to be continued doesn't end in white space", ("some",), ("set_content",)
    ),
    "anthropic.tool_declared": TranscriptRule(
        "Tools that were called are still declared; some hosts want any at all",
        ("discouraged", "some"),
        left="the request's `tools` are yours, and the messages don't show what was meant to be declared",
    ),
    "anthropic.tool_reference": TranscriptRule(
        "A tool that a result refers to is declared",
        ("some",),
        left="the request's `tools` are yours, and the messages don't show what was meant to be declared",
    ),
}
"""By id, in the order in which an API's shapes, ids and sequence are looked at."""

KINDS: Mapping[RepairKind, str] = {
    "close_call": "A call without a result gets one that says it was interrupted, in its place among the others.",
    "drop_call": "A call that nobody can answer or read is left out.",
    "drop_result": "A result without a call, or a second one, is left out.",
    "move_result": "A result is moved to where the API wants it.",
    "move_call": "Calls that their message can't hold go into an assistant message behind it.",
    "move_message": "A message is moved to where the API takes it, or out of a list inside the list.",
    "convert_message": "Calls and results that another API's program wrote are written as this API does.",
    "match_result": "A result without an id gets the one of the call in its place.",
    "rename_id": "An id that is used twice is changed, in the call and in its result alike.",
    "replace_id": "An id that the API refuses is shortened or replaced, in the call and in its result alike.",
    "drop_id": "The id of an item that needs none is left out.",
    "rename_tool": "A tool's name that the API refuses is replaced, at every call the same way.",
    "wrap_arguments": "Arguments are put in a form that the API takes; what can't be read is kept as text inside it.",
    "drop_reasoning": "Reasoning that has lost what it belongs to is left out.",
    "drop_empty": "What says nothing is left out.",
    "drop_duplicate": "What stands in the transcript twice is left out once.",
    "drop_reference": "A reference that names nothing is left out.",
    "drop_key": "A key that the API doesn't know is left out.",
    "set_role": "A message gets the role that its content shows, or the API's name for its role.",
    "set_content": "Content is put in a form that the API takes.",
    "set_field": "A field is set to the value that the rest of the object shows.",
    "move_content": "Content that can't stand where it is is moved: out of a result, before the calls, reasoning to the start.",
    "replace_characters": "Half characters and values that JSON doesn't know are replaced.",
}
"""What each kind of repair does."""
