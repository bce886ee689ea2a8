"""The request of a manifest with `[http]`: from cleaned values to address, headers and body."""

# What is hard: the author of the manifest decides which server is asked, and what for; the model
# decides only what is in the places. So a value is spelled by where it is, in one pass, and
# what it holds is never taken for something else:
#
#   place in                 a value is spelled           without a value
#   -----------------------  ---------------------------  -------------------------------------
#   the scheme, the host     refused when it is loaded
#   a segment of the path    percent-encoded, `/` too;    the call is refused
#                            `.` and `..` are refused
#   the query                percent-encoded              its `name=value` is left out
#   a header                 as it is, if it is ASCII     the header is left out
#   a text of a JSON body    with JSON's escapes          an empty text
#   elsewhere in JSON        a number or boolean bare,    `null`
#                            anything else as a text
#   a form as a body         percent-encoded              its `name=value` is left out
#
# `{_secret:name}` is the variable `TOOLCLAD_SECRET_NAME`, read once, when the manifest is loaded. A
# secret is put in together with the values, and a value has no braces, so none can name one. What
# is shown of a request has the secret's name in its place.

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import quote, quote_plus, urlsplit

from lutumpy.plain.values import dataclass
from lutumpy.toolclad.command import Spelled
from lutumpy.toolclad.tables import HttpTable

__all__ = ["HttpRequest", "HttpTemplate", "compile_http"]

_PLACE = re.compile(r"\{(\w+|_secret:\w+)\}")
_SECRET = "_secret:"
_VARIABLE = "TOOLCLAD_SECRET_"
_ADDRESS = re.compile(r"(https?://)([^/?#]+)([^?#]*)(?:\?([^#]*))?", re.IGNORECASE)
_ADDRESS_CHARACTERS = re.compile(r"[!-~]*")  # of ASCII, without blanks
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_TEXT = re.compile(r"[ -~]*")
_JSON_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_OWN_HEADERS = frozenset("connection content-length host transfer-encoding".split())
_FORM = "application/x-www-form-urlencoded"
_JSON_TYPE = re.compile(r"application/([a-z0-9.+-]+\+)?json", re.IGNORECASE)

Spelling: TypeAlias = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it is sent, and as it is shown.

    Attributes:
        method: Its method.
        url: The address.
        headers: Its headers.
        body: Its body, if it has one.
        shown: Method and address, with the names of secrets in their places.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    shown: tuple[str, str]

    def __repr__(self) -> str:
        return f"<HttpRequest: {' '.join(self.shown)}>"


class JsonPart(NamedTuple):
    """A piece of a JSON body: text of the manifest's, or a place."""

    text: str
    kind: Literal["literal", "in_text", "value"]


@dataclass(frozen=True, slots=True)
class HttpTemplate:
    """A request that was checked.

    Attributes:
        method: Its method.
        origin: Scheme and host.
        path: The path, with places.
        query: The pairs of the query, with places.
        headers: The headers, with places.
        json: The pieces of a JSON body.
        form: The pairs of a form as a body, with places.
        secrets: The secrets that it names.
        bare: The arguments that are numbers or booleans.
        success: The statuses of a success; empty for those from 200 to 299.
        failure: Statuses that are failures whatever else is said.
    """

    method: str
    origin: str
    path: str
    query: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    json: tuple[JsonPart, ...] | None
    form: tuple[str, ...] | None
    secrets: Mapping[str, str]
    bare: frozenset[str]
    success: frozenset[int]
    failure: frozenset[int]

    def __repr__(self) -> str:
        return f"<HttpTemplate: {self.method} {self.origin}{self.path}>"

    def is_success(self, status: int) -> bool:
        """Whether an answer with this status is a success."""
        expected = status in self.success if self.success else 200 <= status <= 299
        return expected and status not in self.failure

    def build(self, values: Mapping[str, Spelled]) -> HttpRequest:
        """The request that a call with these values sends.

        Args:
            values: What was written, and defaults, by argument. Empty ones count as left out.

        Raises:
            ValueError: A value can't be in its place; the text says which, for the model.
        """
        texts = {name: value.text for name, value in values.items() if value.text}
        shown = {f"{_SECRET}{name}": f"{{{_SECRET}{name}}}" for name in self.secrets}
        hidden = {f"{_SECRET}{name}": text for name, text in self.secrets.items()}
        everything = texts | hidden
        return HttpRequest(
            self.method,
            self._address(everything, frozenset()),
            tuple(self._filled_headers(everything)),
            self._body(everything),
            (self.method, self._address(texts | shown, shown.keys())),
        )

    def _address(self, texts: Mapping[str, str], as_they_are: Collection[str]) -> str:
        for name in _PLACE.findall(self.path):
            if name not in texts:
                raise ValueError(f"{name}: it stands in the path of the address, so it is needed")
        path = _fill(self.path, texts, _encode, as_they_are)
        for segment in path.split("/"):
            if segment.lower().replace("%2e", ".") in (".", ".."):
                raise ValueError("a segment of the address's path can't be '.' or '..'")
        pairs = _fill_pairs(self.query, texts, _encode, as_they_are)
        return f"{self.origin}{path}{'?' if pairs else ''}{'&'.join(pairs)}"

    def _filled_headers(self, texts: Mapping[str, str]) -> list[tuple[str, str]]:
        filled: list[tuple[str, str]] = []
        for name, template in self.headers:
            places = _PLACE.findall(template)
            for place in places:
                if _HEADER_TEXT.fullmatch(texts.get(place, "")) is None:
                    raise ValueError(f"{place}: it stands in a header, which takes ASCII alone")
            if all(place in texts for place in places):
                text = _fill(template, texts, str)
                if text != text.strip():
                    raise ValueError(
                        f"{', '.join(places)}: a header can't begin or end with spaces"
                    )
                filled.append((name, text))
        return filled

    def _body(self, texts: Mapping[str, str]) -> bytes | None:
        if self.form is not None:
            return "&".join(_fill_pairs(self.form, texts, quote_plus)).encode()
        if self.json is None:
            return None
        return "".join([self._spell_json(part, texts) for part in self.json]).encode()

    def _spell_json(self, part: JsonPart, texts: Mapping[str, str]) -> str:
        if part.kind == "literal":
            return part.text
        text = texts.get(part.text, "")
        if part.kind == "in_text":
            return json.dumps(text)[1:-1]
        if not text:
            return "null"
        return text if part.text in self.bare else json.dumps(text)


def _encode(text: str) -> str:
    return quote(text, safe="")


def _fill(
    template: str,
    texts: Mapping[str, str],
    spell: Spelling,
    as_they_are: Collection[str] = (),
) -> str:
    """The template with its places filled, in one pass."""

    def spelled(place: re.Match[str]) -> str:
        text = texts[place[1]]
        return text if place[1] in as_they_are else spell(text)

    return _PLACE.sub(spelled, template)


def _fill_pairs(
    pairs: tuple[str, ...],
    texts: Mapping[str, str],
    spell: Spelling,
    as_they_are: Collection[str] = (),
) -> list[str]:
    """The pairs whose places all have a value."""
    return [
        _fill(pair, texts, spell, as_they_are)
        for pair in pairs
        if all(name in texts for name in _PLACE.findall(pair))
    ]


# --- from the table of a manifest -----------------------------------------------------------------


def compile_http(
    table: HttpTable,
    arguments: Collection[str],
    bare: Collection[str],
    environment: Mapping[str, str],
) -> HttpTemplate | list[str]:
    """The request that `[http]` declares, or everything that is wrong with it.

    Args:
        table: The table.
        arguments: The names of the arguments.
        bare: Those that are numbers or booleans.
        environment: Where secrets are looked up.
    """
    problems: list[str] = []
    origin, path, query = _read_address(table.url, problems)
    headers = _read_headers(table.headers, problems)
    json_body, form = _read_body(table, headers, problems)
    texts = [table.url, *table.headers.values(), table.body_template or ""]
    secrets = _read_secrets(texts, environment, problems)
    problems += [
        f"http: {{{name}}} is not an argument"
        for name in dict.fromkeys([name for text in texts for name in _PLACE.findall(text)])
        if not name.startswith(_SECRET) and name not in arguments
    ]
    if problems:
        return problems
    return HttpTemplate(
        table.method,
        origin,
        path,
        query,
        tuple(headers.items()),
        json_body,
        form,
        secrets,
        frozenset(bare),
        frozenset(table.success_status),
        frozenset(table.error_status),
    )


def _read_address(url: str, problems: list[str]) -> tuple[str, str, tuple[str, ...]]:
    """Scheme and host, the path, and the pairs of the query."""
    found = _ADDRESS.fullmatch(url)
    if found is None:
        problems.append("http.url: it is http:// or https:// with a host, and without a fragment")
        return "", "", ()
    scheme, host, path, query = found.groups()
    if _PLACE.search(host):
        problems.append("http.url: the host is the manifest's alone, so it has no places")
    elif not _is_host(scheme + host):
        problems.append(f"http.url: {host!r} is no host, or has a name and password")
    # A place is a word in braces; everything else is written as it is sent.
    if _ADDRESS_CHARACTERS.fullmatch(_PLACE.sub("", path + (query or ""))) is None:
        problems.append("http.url: what isn't ASCII, and blanks, have to be percent-encoded")
    return scheme.lower() + host, path, tuple(query.split("&")) if query else ()


def _is_host(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.username is None and parts.port != 0
    except ValueError:
        return False


def _read_headers(headers: Mapping[str, str], problems: list[str]) -> dict[str, str]:
    read: dict[str, str] = {}
    for name, template in headers.items():
        if _HEADER_NAME.fullmatch(name) is None or name.lower() in _OWN_HEADERS:
            problems.append(f"http.headers: {name!r} can't be set")
        elif name.lower() in map(str.lower, read):
            problems.append(f"http.headers: {name!r} is there twice")
        elif _HEADER_TEXT.fullmatch(template) is None:
            problems.append(f"http.headers.{name}: a header takes ASCII alone")
        elif template != template.strip():
            problems.append(f"http.headers.{name}: a header can't begin or end with spaces")
        read[name] = template
    return read


def _read_body(
    table: HttpTable, headers: dict[str, str], problems: list[str]
) -> tuple[tuple[JsonPart, ...] | None, tuple[str, ...] | None]:
    """The body as pieces of JSON, or as the pairs of a form; adds the type of JSON, if it isn't
    said.
    """
    template = table.body_template
    if template is None:
        return None, None
    if table.method in ("GET", "HEAD"):
        problems.append(f"http.body_template: {table.method} has no body")
        return None, None
    name = next((name for name in headers if name.lower() == "content-type"), None)
    kind = "application/json" if name is None else headers[name].split(";")[0].strip()
    if name is None:
        headers["content-type"] = kind
    if kind.lower() == _FORM:
        return None, tuple(template.strip().split("&"))
    if _JSON_TYPE.fullmatch(kind) is None:
        problems.append(f"http.body_template: a body is JSON or a form ({_FORM}), not {kind!r}")
        return None, None
    parts = _split_json(template)
    tried = "".join(
        [
            part.text if part.kind == "literal" else "null" if part.kind == "value" else ""
            for part in parts
        ]
    )
    try:
        json.loads(tried)
    except (ValueError, RecursionError) as error:
        problems.append(f"http.body_template: it is not JSON: {error}")
    return parts, None


def _split_json(template: str) -> tuple[JsonPart, ...]:
    """The text of the manifest's and the places of a JSON body, in order."""
    parts: list[JsonPart] = []
    end = 0
    for text in _JSON_TEXT.finditer(template):
        parts += _split_places(template[end : text.start()], "value")
        parts += _split_places(text[0], "in_text")
        end = text.end()
    return (*parts, *_split_places(template[end:], "value"))


def _split_places(text: str, kind: Literal["in_text", "value"]) -> list[JsonPart]:
    parts: list[JsonPart] = []
    end = 0
    for place in _PLACE.finditer(text):
        parts += [JsonPart(text[end : place.start()], "literal"), JsonPart(place[1], kind)]
        end = place.end()
    return [*parts, JsonPart(text[end:], "literal")]


def _read_secrets(
    texts: Collection[str], environment: Mapping[str, str], problems: list[str]
) -> dict[str, str]:
    """The secrets that the texts name, by name."""
    secrets: dict[str, str] = {}
    for place in dict.fromkeys([name for text in texts for name in _PLACE.findall(text)]):
        if not place.startswith(_SECRET):
            continue
        name = place.removeprefix(_SECRET)
        variable = f"{_VARIABLE}{name.upper()}"
        secret = environment.get(variable, "")
        if not secret:
            problems.append(f"http: the secret {name!r} is not there; set {variable}")
        elif _HEADER_TEXT.fullmatch(secret) is None:
            problems.append(f"http: the secret {name!r} is not printable ASCII")
        else:
            secrets[name] = secret
    return secrets
