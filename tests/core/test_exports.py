"""The doctor has a door of its own, and costs nothing until it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lutumpy
import lutumpy.doctor

NAMES = ("Problem", "Repair", "apply_repairs", "check_messages", "propose_repairs")


def run(*scripts: str) -> list[str]:
    """What a fresh interpreter prints; each further script has the package imported anew."""
    forget = (
        "for name in [name for name in sys.modules if name.partition('.')[0] == 'lutumpy']: del "
        "sys.modules[name]"
    )
    script = f"\nimport sys\n{forget}\n".join(scripts)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_importing_the_package_loads_neither_the_checks_nor_the_repairs() -> None:
    loaded = run("import lutumpy, sys; print(*sys.modules)")
    rules = {name for name in loaded if name.startswith("lutumpy.rules.")}
    # Tools walk through their schemas with these; they check nothing.
    walking = {"pointer", "problem", "schema_walk"}
    assert rules <= {f"lutumpy.rules.{name}" for name in walking}
    assert [name for name in loaded if name.startswith("lutumpy.doctor")] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_late_name_is_there_when_it_is_asked_for(name: str) -> None:
    asked = f"import lutumpy.doctor as d; print(d.{name}.__name__, '{name}' in dir(d))"
    printed = run(f"from lutumpy.doctor import {name}; print({name}.__name__)", asked)
    assert printed == [name, name, "True"]
    assert name in lutumpy.doctor.__all__


def test_a_star_import_brings_them_all() -> None:
    assert run(
        f"from lutumpy.doctor import *; print(*[f.__name__ for f in ({', '.join(NAMES)})])"
    ) == list(NAMES)


@pytest.mark.slow
def test_the_doctor_loads_no_sdk() -> None:
    script = (
        "from lutumpy.doctor import *; import sys; propose_repairs('openai_chat', [{}]); "
        "print(*sys.modules)"
    )
    assert {"openai", "anthropic", "httpx", "starlette"} & set(run(script)) == set()


def test_other_names_are_still_missing() -> None:
    with pytest.raises(AttributeError, match="module 'lutumpy' has no attribute 'check'"):
        _ = lutumpy.check  # type: ignore[attr-defined]
    with pytest.raises(ImportError):
        from lutumpy import nothing  # type: ignore[attr-defined]  # noqa: F401
