"""The tests see nothing of a developer's own keys, profiles and addresses."""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from provider_environment import SURROUNDINGS, is_of_provider

from lutumpy.apis import api_names, api_row, serves, serving

TESTS = Path(__file__).parent
_NAME = re.compile(r"_?[A-Z][A-Z0-9]*(?:_+[A-Z0-9]+)+\Z")
_READS = re.compile(rb"\b(?:environ|getenv|environment_vars)\b")

# Every program may read these; they are no provider's.
OF_NO_PROVIDER = {
    *("SSL_CERT_DIR", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"),
    *("PYTEST_CURRENT_TEST", "DEFER_PYDANTIC_BUILD"),
}


def sources(package: str) -> Iterator[ast.Module]:
    """The modules of an installed package that read its environment."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, package
    assert spec.origin is not None, package
    for file in Path(spec.origin).parent.rglob("*.py"):
        if {"tests", "types", "resources"}.isdisjoint(file.parts):
            text = file.read_bytes()
            if _READS.search(text) or file.name == "environment_vars.py":
                yield ast.parse(text)


def texts_of(node: Any, constants: dict[str, list[str]]) -> list[str]:
    """The texts that an expression is, where that can be seen."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, (ast.List, ast.Tuple)):
        return [text for element in node.elts for text in texts_of(element, constants)]
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return constants.get(name, [])


@functools.cache
def variables_read_by(package: str) -> set[str]:
    """The variables that a package's source reads: named where they are read, in a constant, or in
    a table of settings as (name in a file, variable, default, conversion).
    """
    nodes = [node for module in sources(package) for node in ast.walk(module)]
    constants: dict[str, list[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            constants.setdefault(node.targets[0].id, []).extend(texts_of(node.value, {}))
    found: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Call) and node.args:
            if re.search(r"\b(getenv|_?environ)\b", ast.unparse(node.func)):
                found += texts_of(node.args[0], constants)
        elif isinstance(node, ast.Subscript) and "environ" in ast.unparse(node.value):
            found += texts_of(node.slice, constants)
        elif isinstance(node, ast.Compare) and "environ" in ast.unparse(node.comparators[0]):
            found += texts_of(node.left, constants)
        elif isinstance(node, ast.Tuple) and len(node.elts) == 4:
            found += texts_of(node.elts[1], {})
        elif isinstance(node, ast.Name) and node.id.isupper():
            # What is read by a name that only a program's run shows stands in a constant, too.
            found += [text for text in constants.get(node.id, ()) if is_of_provider(text)]
    return {name for name in found if _NAME.match(name)}


def test_every_maker_in_the_table_is_known_by_its_surroundings() -> None:
    assert {api_row(api).family for api in api_names()} == set(SURROUNDINGS)
    for api in api_names():
        keys = serving(api, "demo").keys if serves(api, "demo") else ()
        assert [key for key in keys if not is_of_provider(key)] == []


@pytest.mark.pure
@pytest.mark.slow
@pytest.mark.parametrize("maker", SURROUNDINGS)
def test_every_variable_that_an_sdk_reads_is_left_out(maker: str) -> None:
    known = SURROUNDINGS[maker]
    read = {name for package in known.packages for name in variables_read_by(package)}
    assert {name for name in read if not is_of_provider(name)} <= OF_NO_PROVIDER
    # Each way of reading one is seen.
    seen = {
        "openai": {"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "AZURE_OPENAI_API_KEY"},
        "anthropic": {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"},
        "google": {"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GCE_METADATA_HOST"},
        "bedrock": {"AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_CONFIG_FILE"},
        "ollama": {"OLLAMA_HOST", "OLLAMA_API_KEY"},
    }
    assert seen[maker] <= read
    for name in known.settings:
        assert is_of_provider(name), name


@pytest.mark.pure
@pytest.mark.slow
def test_tests_and_the_programs_that_they_start_find_nothing_of_their_surroundings() -> None:
    read = {
        name
        for known in SURROUNDINGS.values()
        for package in known.packages
        for name in variables_read_by(package)
    }
    poisoned = dict.fromkeys(read - OF_NO_PROVIDER, "poison")
    given = {**os.environ, **poisoned, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "poison"}
    show = "import json, os; print(json.dumps(dict(os.environ)))"
    code = (
        "import subprocess, sys; sys.path.insert(0, sys.argv[1]); import conftest; "
        "print(subprocess.check_output([sys.executable, '-c', sys.argv[2]], text=True))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(TESTS), show],
        env=given,
        capture_output=True,
        text=True,
        check=True,
    )
    inner = json.loads(done.stdout)
    assert [name for name, value in inner.items() if value == "poison"] == []
    settings = {n: v for known in SURROUNDINGS.values() for n, v in known.settings.items()}
    assert {name: inner.get(name) for name in settings} == settings
    assert {name: os.environ.get(name) for name in settings} == settings
