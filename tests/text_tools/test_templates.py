"""The format of a model by its chat template, from a server or from the files of a tokenizer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from lutumpy.testing import ScriptedModel
from lutumpy.text_tools import TextTools, fetch_template, read_template, recognize_format

# As templates write calls; each holds what tells its format.
TEMPLATES = {
    "hermes": '\'<tool_call>\\n{"name": "\' + call.name',
    "qwen3_coder": "'<tool_call>\\n<function=' + call.name + '>\\n<parameter='",
    "glm45": "'<tool_call>' + name + '\\n<arg_key>' + key + '</arg_key>'",
    "poolside_v1": "<available_tools>' '<tool_call>' + name + '<arg_key>' + key",
    "mistral_v3": "'[TOOL_CALLS][' + calls",
    "mistral_v11": "'[TOOL_CALLS]' + name + '[ARGS]' + arguments",
    "mistral_v11_id": "'[TOOL_CALLS]' + name + '[CALL_ID]' + id + '[ARGS]' + arguments",
    "deepseek_v31": "'<\uff5ctool▁call▁begin\uff5c>' + name + '<\uff5ctool▁sep\uff5c>'",
    "deepseek_v3": "'<\uff5ctool▁call▁begin\uff5c>function<\uff5ctool▁sep\uff5c>' + '```json'",
    "minicpm5": "'<function name=\"' + name + '\"><param name=\"'",
    "minimax_m3": "set mark = ']<]minimax[>['",
    "kimi_k3": "'<|open|>' + tag + '<|sep|>' + '<|close|>' + 'argument'",
    "command_r7b": "'<|START_ACTION|>'",
    "cohere_command4": "'<|START_TEXT|>' + text + '<|START_ACTION|>'",
}


def test_a_template_tells_its_format_and_more_than_the_name_of_the_model() -> None:
    for name, template in TEMPLATES.items():
        for model in ("", "Qwen3-8B", "llama-3"):
            found = recognize_format(model, template)
            assert found is not None
            assert found.name == name
    assert recognize_format("", "{{ messages }}") is None


def test_auto_goes_by_the_template_then_by_the_name_and_logs_which(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = ScriptedModel([], model="Qwen3-8B")
    with caplog.at_level("INFO", logger="lutumpy.text_tools"):
        llm: Any = TextTools(model, parser="auto", template=TEMPLATES["glm45"])
        assert llm.parser.tags == ("<tool_call>", "</tool_call>")
        assert llm.parser.syntax.key == ("<arg_key>", "</arg_key>")
        TextTools(model, parser="auto", template="{{ messages }}")
    assert "Qwen3-8B are read as glm45, by its template" in caplog.text
    assert "Qwen3-8B are read as hermes, by its name" in caplog.text
    with pytest.raises(ValueError, match="needs parser"):
        TextTools(model, template="x")


class _Props(BaseHTTPRequestHandler):
    body = b""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/props" else 404)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), _Props) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_a_server_of_llama_cpp_tells_its_template(
    server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # which this machine isn't reached by
    address = f"http://127.0.0.1:{server.server_port}"
    _Props.body = json.dumps({"chat_template": TEMPLATES["minicpm5"]}).encode()
    for url in (address, f"{address}/", f"{address}/v1", f"{address}/v1/"):
        assert fetch_template(url) == TEMPLATES["minicpm5"]
    for body in (b"{}", b"no JSON", b'{"chat_template": ""}', b"[]", b"\xff"):
        _Props.body = body
        with pytest.raises(ValueError, match="tells no chat template"):
            fetch_template(address)
    with pytest.raises(OSError, match="404"):
        fetch_template(f"{address}/elsewhere")
    for url in ("file:///etc/hosts", "localhost:8080", ""):
        with pytest.raises(ValueError, match="no address"):
            fetch_template(url)


def test_the_files_of_a_tokenizer_tell_its_template(tmp_path: Path) -> None:
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": "a"}))
    assert read_template(config) == read_template(tmp_path) == "a"
    several = [{"name": "default", "template": "b"}, {"name": "tool_use", "template": "c"}]
    config.write_text(json.dumps({"chat_template": several}))
    assert read_template(str(config)) == "c"
    config.write_text(json.dumps({"chat_template": several[:1]}))
    assert read_template(config) == "b"
    (tmp_path / "chat_template.jinja").write_text("d")
    assert read_template(tmp_path) == "d"
    config.write_text("{}")
    with pytest.raises(ValueError, match="tells no chat template"):
        read_template(config)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has none of"):
        read_template(tmp_path / "empty")
    with pytest.raises(FileNotFoundError):
        read_template(tmp_path / "nothing.json")
