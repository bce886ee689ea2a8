"""Batches of Chat Completions and Responses at the test server, and the files that they need.

Source: OpenAI's API description. The words of the refusals are made up after its manner.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

from lutumpy.errors import Problem
from lutumpy.testing.api_server import Json, Query, Refused, Resource, Route
from lutumpy.testing.batches import CREATE_BATCH, BatchAnswer, BatchEntry, write_lines
from lutumpy.testing.lists import write_page
from lutumpy.testing.render_openai import CREATED

__all__ = ["BATCH_ROUTES", "OpenAIBatches", "read_upload"]

BATCH_ROUTES: tuple[Route, ...] = (
    Route("/files", {"POST": "upload_file"}),
    Route("/files/{file}", {"GET": "file", "DELETE": "delete_file"}),
    Route("/files/{file}/content", {"GET": "file_content"}),
    Route("/batches", {"POST": CREATE_BATCH, "GET": "batches"}),
    Route("/batches/{batch}", {"GET": "batch"}),
    Route("/batches/{batch}/cancel", {"POST": "cancel_batch"}),
)

_ENDPOINTS = ("/v1/chat/completions", "/v1/responses")


def read_upload(kind: str, data: bytes) -> Json | None:
    """The fields of a form that uploads a file, which is a text; `None` for another body."""
    if not kind.startswith("multipart/form-data"):
        return None
    head = f"Content-Type: {kind}\r\n\r\n".encode()
    form = BytesParser(policy=HTTP).parsebytes(head + data)
    found: Json = {}
    for part in form.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        text = content.decode("utf-8", "replace") if isinstance(content, bytes) else ""
        found[str(name)] = text
        if part.get_filename():
            found["filename"] = part.get_filename()
    return found


@dataclass(slots=True)
class OpenAIBatches:
    """The files and batches of one server, by their ids."""

    _files: dict[str, Json] = field(default_factory=dict[str, Json])
    _contents: dict[str, bytes] = field(default_factory=dict[str, bytes])
    _batches: dict[str, Json] = field(default_factory=dict[str, Json])
    _ids_used: int = 0

    def read(self, body: Any) -> list[BatchEntry]:
        """The requests of a batch."""
        asked = body if isinstance(body, Mapping) else {}
        for key in ("input_file_id", "endpoint", "completion_window"):
            if not isinstance(asked.get(key), str):
                raise _refused(key, f"Missing required parameter: '{key}'.")
        if asked["endpoint"] not in _ENDPOINTS:
            raise _refused("endpoint", f"Invalid value: '{asked['endpoint']}'.")
        lines = self._contents.get(asked["input_file_id"])
        if lines is None:
            raise _refused("input_file_id", f"No such File object: {asked['input_file_id']}")
        return [
            _read_line(number, line, asked["endpoint"])
            for number, line in enumerate(lines.decode("utf-8").splitlines(), 1)
            if line.strip()
        ]

    def keep(self, body: Mapping[str, Any], answers: list[BatchAnswer]) -> Json:
        """Keep what came of a batch."""
        lines: dict[bool, list[Json]] = {True: [], False: []}
        for answer in answers:
            sent = {
                "status_code": answer.status,
                "request_id": f"req_{answer.number:024d}",
                "body": answer.body,
            }
            line: Json = {"id": f"batch_req_{answer.number:024d}", "custom_id": answer.custom_id}
            lines[answer.status == 200].append({**line, "response": sent, "error": None})
        files: dict[bool, str | None] = {
            good: self._add_file(f"{word}.jsonl", "batch_output", write_lines(lines[good]))["id"]
            if lines[good]
            else None
            for good, word in ((True, "output"), (False, "errors"))
        }
        self._ids_used += 1
        counts = {
            "total": len(answers),
            "completed": len(lines[True]),
            "failed": len(lines[False]),
        }
        ended: Json = {
            "id": f"batch_{self._ids_used:024d}",
            "object": "batch",
            "endpoint": body["endpoint"],
            "errors": None,
            "input_file_id": body["input_file_id"],
            "completion_window": body["completion_window"],
            "status": "completed",
            "output_file_id": files[True],
            "error_file_id": files[False],
            "created_at": CREATED,
            "completed_at": CREATED,
            "request_counts": counts,
            "metadata": body.get("metadata"),
        }
        self._batches[ended["id"]] = ended
        return {
            **ended,
            "status": "in_progress",
            "output_file_id": None,
            "error_file_id": None,
            "completed_at": None,
            "request_counts": {**counts, "completed": 0, "failed": 0},
        }

    def resources(self) -> Mapping[str, Resource]:
        """What answers each operation."""
        return {
            "upload_file": self._upload,
            "file": self._find_file,
            "delete_file": self._delete_file,
            "file_content": lambda query: self._contents[self._find_file(query)["id"]],
            "batches": lambda query: {
                "object": "list",
                **write_page([*self._batches.values()][::-1], has_more=False),
            },
            "batch": self._find_batch,
            "cancel_batch": self._find_batch,  # it has ended, and stays as it is
        }

    def _upload(self, query: Query) -> Json:
        asked = query.body if isinstance(query.body, Mapping) else {}
        for key in ("file", "purpose"):
            if not isinstance(asked.get(key), str):
                raise _refused(key, f"Missing required parameter: '{key}'.")
        name = str(asked.get("filename") or "file")
        return self._add_file(name, asked["purpose"], asked["file"].encode())

    def _add_file(self, name: str, purpose: str, content: bytes) -> Json:
        self._ids_used += 1
        file_id = f"file-{self._ids_used:024d}"
        file: Json = {
            "id": file_id,
            "object": "file",
            "bytes": len(content),
            "created_at": CREATED,
            "filename": name,
            "purpose": purpose,
            "status": "processed",
        }
        self._files[file_id], self._contents[file_id] = file, content
        return file

    def _find_file(self, query: Query) -> Json:
        found = self._files.get(query.ids["file"])
        if found is None:
            raise _refused("id", f"No such File object: {query.ids['file']}", 404)
        return found

    def _delete_file(self, query: Query) -> Json:
        file_id = self._find_file(query)["id"]
        del self._files[file_id], self._contents[file_id]
        return {"id": file_id, "object": "file", "deleted": True}

    def _find_batch(self, query: Query) -> Json:
        found = self._batches.get(query.ids["batch"])
        if found is None:
            raise _refused("id", f"No batch found with id '{query.ids['batch']}'.", 404)
        return found


def _read_line(number: int, line: str, endpoint: str) -> BatchEntry:
    try:
        found: Any = json.loads(line)
    except ValueError:
        found = None
    request = found if isinstance(found, dict) else {}
    custom_id, body = request.get("custom_id"), request.get("body")
    fits = request.get("method") == "POST" and request.get("url") == endpoint
    if not isinstance(custom_id, str) or not isinstance(body, dict) or not fits:
        words = (
            f"Line {number} is no request for {endpoint}: it needs custom_id, method, url, body."
        )
        raise _refused("input_file_id", words)
    return BatchEntry(custom_id, endpoint, {**body, "stream": False} if "stream" in body else body)


def _refused(where: str, message: str, status: int = 400) -> Refused:
    return Refused(Problem("chat.batch", where, message, "refused", status=status, param=where))
