"""What a tool was when somebody decided on it, as a digest: no change of it goes unseen."""

# The digest of a lock file (`lutumpy.tool_doctor`) is over what the model is shown. That of a plan
# is over the effect too: whoever lets a call run has decided on that as well.

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from lutumpy.plain import json_values
from lutumpy.plain.canonical_schema import canonical
from lutumpy.tools.definition import ToolDef

__all__ = ["canonical_content", "content_of", "digest_of", "tool_digest"]


def content_of(definition: ToolDef) -> dict[str, Any]:
    """What the model is shown of a tool."""
    content: dict[str, Any] = {
        "description": definition.description,
        "input_schema": definition.input_schema,
        "output_schema": definition.output_schema,
        "strict": definition.options.strict,
    }
    # Left out where there is nothing, as in locks that were written before it was known.
    if definition.options.provider:
        content["provider"] = definition.options.provider
    if definition.text is not None:
        wanted = definition.text.format
        grammar = None if wanted is None else {wanted.syntax: wanted.definition}
        content["text"] = {"format": grammar, "description": definition.text.description}
    return content


def canonical_content(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same value for every spelling of the same tool."""
    # A default may be a value that JSON has no form for; what is sent, and what counts, is what the
    # encoder makes of it.
    sorted_content: dict[str, Any] = canonical(json_values.decode(json_values.encode(content)))
    return sorted_content


def digest_of(canonical_form: Mapping[str, Any]) -> str:
    """`sha256:` and the digest of a canonical value."""
    data = json.dumps(canonical_form, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"


def tool_digest(definition: ToolDef) -> str:
    """The digest of a tool: of what the model is shown, its effect, and whether it may be late."""
    content = {**content_of(definition), "effect": definition.options.effect}
    # Left out where it isn't, as in digests that were made before it was known.
    if definition.options.late:
        content["late"] = True
    return digest_of(canonical_content(content))
