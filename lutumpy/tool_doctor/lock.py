"""`lutumpy.lock.json`: what the model was shown of each tool, so that no change of it goes unseen.

Locked are description, input schema, output schema, `strict` and `provider` of each tool, and of a
text tool what the text has to fit. Order of keys, of `required` and of the tools makes no
difference; a changed description does, since the model reads nothing else.
"""

# The digest is redundant: it could be computed from the definition beside it. It is there so that a
# lock edited by hand is noticed. Whoever changes the lock should do so with `lutumpy tools lock`:
# otherwise a merge conflict resolved wrongly would pass for an accepted tool.

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from lutumpy import Toolset
from lutumpy.errors import LockError
from lutumpy.tool_doctor.differences import Difference, differences
from lutumpy.tools import canonical_content, content_of, digest_of

__all__ = [
    "LOCK_FILE",
    "Drift",
    "Lock",
    "LockError",
    "LockedTool",
    "LockedToolset",
    "drift",
    "locked_toolset",
]

LOCK_FILE = "lutumpy.lock.json"
"""The name of the lock file, where none is given."""
VERSION = 1
_FORMAT = "lutumpy.lock"


@dataclass(frozen=True, slots=True)
class LockedTool:
    """One tool as it was locked.

    Attributes:
        digest: `sha256:` and the digest of the definition's canonical JSON.
        definition: `description`, `input_schema`, `output_schema`, `strict`, and `provider` where
            single APIs are told more; in canonical form.
    """

    digest: str
    definition: Mapping[str, Any]


LockedToolset = Mapping[str, LockedTool]
"""The locked tools of one toolset by name."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How a toolset differs from its lock.

    Attributes:
        added: Tools that the lock doesn't know.
        removed: Tools that only the lock knows.
        changed: What differs in each of the others.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: Mapping[str, tuple[Difference, ...]]

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.added or self.removed or self.changed)


@dataclass(frozen=True, slots=True)
class Lock:
    """The content of a lock file.

    Attributes:
        toolsets: The locked toolsets, by the name under which they are loaded
            (`package.module:AppTools`).
    """

    toolsets: Mapping[str, LockedToolset]

    @staticmethod
    def read(path: str | Path) -> Lock | None:
        """The lock in a file; `None` when the file does not exist.

        Raises:
            LockError: The file can't be read, is not a lock file, was edited by hand, or has a
                version that this release doesn't read.
        """
        try:
            text = Path(path).read_bytes().decode()
            data = json.loads(text)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LockError(f"{path} can't be read: {error.strerror or error}") from error
        except (ValueError, RecursionError) as error:
            raise LockError(f"{path} is not JSON: {error}") from error
        try:
            return _parse_lock(data)
        except LockError as error:
            raise LockError(f"{path} {error}") from error

    def with_toolset(self, name: str, toolset: type[Toolset[Any]]) -> Lock:
        """The lock with `toolset` locked as it is now, under `name`; the others stay."""
        return Lock({**self.toolsets, name: locked_toolset(toolset)})

    def text(self) -> str:
        """The content of the file: the same text for the same tools, with a line for each value."""
        data = {
            "format": _FORMAT,
            "version": VERSION,
            "toolsets": {
                name: {
                    tool: {"digest": one.digest, **one.definition}
                    for tool, one in sorted(tools.items())
                }
                for name, tools in sorted(self.toolsets.items())
            },
        }
        return json.dumps(data, indent=2, ensure_ascii=True) + "\n"


def locked_toolset(toolset: type[Toolset[Any]]) -> LockedToolset:
    """Every tool of `toolset` as it would be locked now, those that are off included."""
    return {
        definition.name: _lock_content(content_of(definition))
        for definition in toolset.definitions()
    }


def drift(locked: LockedToolset, toolset: type[Toolset[Any]]) -> Drift:
    """How `toolset` differs from what was locked; false when it doesn't."""
    now = locked_toolset(toolset)
    changed = {
        name: tuple(differences(locked[name].definition, tool.definition))
        for name, tool in now.items()
        if name in locked and locked[name].digest != tool.digest
    }
    return Drift(
        added=tuple([name for name in now if name not in locked]),
        removed=tuple([name for name in locked if name not in now]),
        changed=changed,
    )


def _lock_content(content: Mapping[str, Any]) -> LockedTool:
    definition = canonical_content(content)
    return LockedTool(digest_of(definition), definition)


def _parse_lock(data: Any) -> Lock:
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise LockError("is not a lock file of this program")
    if data.get("version") != VERSION or isinstance(data.get("version"), bool):
        raise LockError(
            f"has the version {data.get('version')!r}, and this release reads {VERSION}"
        )
    toolsets: dict[str, LockedToolset] = {}
    for name, tools in _require_object(data.get("toolsets"), "toolsets").items():
        locked: dict[str, LockedTool] = {}
        for tool, entry in _require_object(tools, name).items():
            content = dict(_require_object(entry, f"{name}, {tool}"))
            digest = content.pop("digest", None)
            expected = _lock_content(content)
            if digest != expected.digest:
                raise LockError(
                    f"was edited by hand: the digest of {tool!r} in {name} is not that of its "
                    "definition"
                )
            locked[tool] = expected
        toolsets[name] = locked
    return Lock(toolsets)


def _require_object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise LockError(f"is not a lock file of this program: {where} is not an object")
    return cast("Mapping[str, Any]", value)
