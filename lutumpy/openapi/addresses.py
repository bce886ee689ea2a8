"""Where a request goes: an operation's path, and the address that it makes with a server's."""

# What is hard here
# -----------------
# A document may be a stranger's, and the server's address and its keys are the user's. So whatever
# a path of the document holds, the request goes to that server, below the path of its address:
#
#   a path of the document            what becomes of it
#   --------------------------------  -------------------------------------------------------------
#   doesn't begin with one `/`        refused: `https://host/x`, `//host/x` and `@host/x` would lead
#                                     to another host behind or beside the server's address
#   has a segment `.` or `..`         refused, encoded ones and those between `\` as well: they lead
#                                     out of the path of the server's address
#   `#` and what follows              a name that tells operations apart; never sent
#   `?` and what follows              a query that is sent before the parameters. A parameter of the
#                                     same name is not asked for: the document has its value
#   blanks, control characters, ...   percent-encoded; what is encoded already stays as it is
#
# All this is decided when the document is imported. What later comes of it is checked again,
# since clients join addresses in their own ways: a request whose target is more than a path and a
# query can't be built at all (`check_target`), and `join_address` compares the origin of what it
# joined with that of the server.

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from lutumpy.errors import LutumpyError
from lutumpy.openapi.document import UnusableError
from lutumpy.openapi.styles import SpellingError
from lutumpy.plain import json_values
from lutumpy.plain.preview import shorten
from lutumpy.plain.safe_text import safe_repr

__all__ = ["AddressError", "PathTemplate", "check_target", "join_address", "read_template"]

_NAME = re.compile(r"\{([^{}]+)\}")
_MARKER = re.compile(r"\{(\d+)\}")
"""A place of a name in a template whose other braces are encoded."""

# RFC 3986: what a path and a query may hold by themselves, beside letters, digits and `-._~`.
_IN_PATH = "!$&'()*+,;=:@/"
_IN_QUERY = _IN_PATH + "?"
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PATH = re.compile(r"/(?!/)(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*")
_QUERY = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*")
_SERVER_PATH = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*")
_SEPARATORS = re.compile(r"[/\\]")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class AddressError(LutumpyError, ValueError):
    """A request would leave the address of its server; nothing was sent."""


class PathTemplate(NamedTuple):
    """The path of an operation, as it is sent once its names are filled in.

    Attributes:
        path: The path, encoded, with `{0}` in the place of the first name.
        query: The pairs of the query behind it, encoded, with such places as well.
        names: The names.
    """

    path: str
    query: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def path_names(self) -> tuple[str, ...]:
        """The names that the path needs."""
        return self._find_names(self.path)

    def query_names(self, pair: str) -> tuple[str, ...]:
        """The names that a pair of its query needs."""
        return self._find_names(pair)

    def _find_names(self, text: str) -> tuple[str, ...]:
        return tuple([self.names[int(number)] for number in _MARKER.findall(text)])

    def without_pairs(self, pairs: Collection[str]) -> PathTemplate:
        """The same without these pairs of its query."""
        return self._replace(query=tuple([pair for pair in self.query if pair not in pairs]))

    def fill(self, texts: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
        """Path and pairs of the query, with encoded texts in the places of the names.

        Raises:
            SpellingError: A segment would be empty, `.` or `..`, which leads to another address.
        """
        path = self._fill_text(self.path, texts)
        if self.names:
            for segment, template in zip(path.split("/"), self.path.split("/"), strict=True):
                names = self._find_names(template)
                if names and (not segment or _leads_elsewhere(segment)):
                    shown = shorten(unquote(segment), 100)
                    raise SpellingError(f"{names[0]!r} makes the segment {shown!r} of the path")
        return path, tuple([self._fill_text(pair, texts) for pair in self.query])

    def _fill_text(self, text: str, texts: Mapping[str, str]) -> str:
        return _MARKER.sub(lambda found: texts[self.names[int(found[1])]], text)


def read_template(template: str) -> PathTemplate:
    """The template of a path of the document.

    Raises:
        UnusableError: What it leads to isn't below the address of a server.
    """
    shown = shorten(repr(template), 200)
    if not template.startswith("/"):
        raise UnusableError(f"its path {shown} doesn't begin with '/'")
    if template.startswith(("//", "/\\")):
        raise UnusableError(f"its path {shown} begins with more than one slash: that names a host")
    names: list[str] = []
    texts = {"path": "", "query": ""}
    place = "path"
    # Literal texts and names in turns.
    for index, piece in enumerate(_NAME.split(template)):
        if index % 2:
            texts[place] += f"{{{len(names)}}}"
            names.append(piece)
            continue
        literal, fragment, _ = piece.partition("#")
        if place == "path":
            literal, mark, query = literal.partition("?")
            texts["path"] += _encode_literal(literal, _IN_PATH)
            place = "query" if mark else "path"
            texts["query"] += _encode_literal(query, _IN_QUERY)
        else:
            texts["query"] += _encode_literal(literal, _IN_QUERY)
        if fragment:
            break
    for segment in texts["path"].split("/"):
        if segment and _leads_elsewhere(segment):
            raise UnusableError(f"its path {shown} has a segment that leads to another one")
    pairs = tuple([pair for pair in texts["query"].split("&") if pair])
    return PathTemplate(texts["path"], pairs, tuple(names))


def _encode_literal(text: str, safe: str) -> str:
    kept = _LONE_PERCENT.sub("%25", json_values.clean_text(text))
    return quote(kept, safe=safe + "%")


def _leads_elsewhere(segment: str) -> bool:
    """Whether a segment is `.` or `..` to somebody who decodes it before looking at the path."""
    return any(part in (".", "..") for part in _SEPARATORS.split(unquote(segment)))


# --- requests -------------------------------------------------------------------------------------


def check_target(path: Any, query_string: Any) -> None:
    """Refuse what is more than a path and a query.

    Raises:
        AddressError: A client might read another host in it, or another path.
    """
    if not isinstance(path, str) or _PATH.fullmatch(path) is None:
        raise AddressError(
            f"{shorten(safe_repr(path), 200)} is not a path that begins with one '/' and is "
            "percent-encoded; nothing was sent"
        )
    if any(map(_leads_elsewhere, path.split("/"))):
        raise AddressError(
            f"the path {shorten(repr(path), 200)} has a segment '.' or '..'; nothing was sent"
        )
    if not isinstance(query_string, str) or _QUERY.fullmatch(query_string) is None:
        raise AddressError(
            f"{shorten(safe_repr(query_string), 200)} is not a query that is percent-encoded; "
            "nothing was sent"
        )


def join_address(server: Any, target: str) -> str:
    """The address of a request.

    Args:
        server: The server's address: `https://host`, with a port and a path or without.
        target: Path and query of the request.

    Raises:
        AddressError: The server's address can't be one, or what was joined isn't below it.
    """
    base = _split_server(server)
    address = f"{base.scheme}://{base.netloc}{base.path.rstrip('/')}{target}"
    joined = urlsplit(address)
    if _origin(joined) != _origin(base) or not joined.path.startswith(base.path.rstrip("/") + "/"):
        raise AddressError(
            f"{shorten(safe_repr(target), 200)} leads away from {_show_origin(base)}; nothing was "
            "sent"
        )
    return address


def _split_server(server: Any) -> SplitResult:
    try:
        # `urlsplit` leaves out line breaks and tabs, which then aren't seen any more.
        if any(not "\x20" < character < "\x7f" for character in server) or "\\" in server:
            raise ValueError
        base: SplitResult = urlsplit(server)
        _origin(base)
    except (TypeError, ValueError):
        base = urlsplit("")
    if base.scheme not in _DEFAULT_PORTS or not base.hostname:
        why = "it is not of the form https://host"
    elif "?" in server or "#" in server:
        why = "a query or a fragment can't stand before a path; give the client its parameters"
    elif not _SERVER_PATH.fullmatch(base.path) or any(map(_leads_elsewhere, base.path.split("/"))):
        why = "its path is not encoded, or has a segment '.' or '..'"
    else:
        return base
    # It may hold a password, so it isn't shown.
    raise AddressError(f"the server's address can't be used: {why}; nothing was sent")


def _origin(address: SplitResult) -> tuple[str, str | None, str | None, str, int | None]:
    """Scheme, user, password, host and port; raises `ValueError` for a port that isn't one."""
    port = address.port or _DEFAULT_PORTS.get(address.scheme)
    return address.scheme, address.username, address.password, address.hostname or "", port


def _show_origin(address: SplitResult) -> str:
    return f"{address.scheme}://{address.hostname}"
