"""Chat templates, where servers and the files of tokenizers tell them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lutumpy.plain import json_values

__all__ = ["fetch_template", "read_template"]

_FILES = ("chat_template.jinja", "tokenizer_config.json", "chat_template.json")
_MOST_BYTES = 16 * 1024 * 1024


def fetch_template(url: str, *, timeout: float = 10.0) -> str:
    """The chat template that a llama.cpp server tells under `/props`.

    It blocks; in a coroutine, call it in a thread.

    Args:
        url: The server's address, with or without the `/v1` of its OpenAI API.
        timeout: Seconds to wait for its answer.

    Raises:
        OSError: the server can't be reached, or refuses.
        ValueError: the address is none of HTTP, or what it answers holds no template.
    """
    # Imported here: most programs have no such server.
    from urllib.error import HTTPError
    from urllib.request import ProxyHandler, Request, build_opener

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"{url!r} is no address of an HTTP server")
    path = parts.path.rstrip("/").removesuffix("/v1")
    address = f"{parts.scheme}://{parts.netloc}{path}/props"
    # A proxy of the environment can't reach a server on this machine.
    is_near = parts.hostname in ("127.0.0.1", "::1", "localhost")
    opener = build_opener(ProxyHandler({})) if is_near else build_opener()
    try:
        with opener.open(Request(address), timeout=timeout) as reply:
            data: bytes = reply.read(_MOST_BYTES)
    except HTTPError as refusal:
        refusal.close()  # it is the answer as well, and holds the connection
        raise
    return _template_in(data, address)


def read_template(path: str | os.PathLike[str]) -> str:
    """The chat template of a tokenizer.

    Args:
        path: Its folder, or one of its files: `tokenizer_config.json`, `chat_template.jinja`.

    Raises:
        OSError: there is no such file.
        ValueError: it holds no template.
    """
    file = Path(path)
    if file.is_dir():
        found = [file / name for name in _FILES if (file / name).is_file()]
        if not found:
            raise ValueError(f"{file} has none of {', '.join(_FILES)}")
        file = found[0]
    data = file.read_bytes()
    return data.decode(errors="replace") if file.suffix != ".json" else _template_in(data, file)


def _template_in(data: bytes, place: object) -> str:
    try:
        values: Any = json_values.decode(data.decode())
    except (ValueError, RecursionError):
        values = None
    template: Any = values.get("chat_template") if isinstance(values, Mapping) else None
    if isinstance(template, list):  # several, each with its name
        named = {one.get("name"): one.get("template") for one in template if isinstance(one, dict)}
        template = named.get("tool_use") or named.get("default")
    if not isinstance(template, str) or not template:
        raise ValueError(f"{place} tells no chat template")
    return template
