"""No file names an API but those that are about it: a provider is its folders, its rendering, and a
row of the table.
"""

from __future__ import annotations

from pathlib import Path

from lutumpy.apis import api_names

PACKAGE = Path(__file__).parent.parent.parent / "lutumpy"
ROOMS = ("adapters", "rules", "doctor")
"""Folders in which each provider has a folder of its own."""


def _is_home(path: Path) -> bool:
    """Whether a file is in a folder of a provider, the table, or the rendering of an API."""
    parts = path.relative_to(PACKAGE).parts
    if parts[0] in ROOMS:
        return len(parts) > 2
    # A vendor's own tools are spoken by its APIs alone.
    if parts[:2] == ("demo", "providers") or parts[0] == "provider_tools":
        return True
    return parts == ("apis.py",) or (parts[0] == "testing" and parts[-1].startswith("render_"))


def test_no_other_file_names_an_api() -> None:
    quoted = [f"{quote}{api}{quote}" for api in api_names() for quote in "\"'"]
    found = [
        f"{path.relative_to(PACKAGE.parent)}:{number}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if not _is_home(path)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if any(name in line for name in quoted)
    ]
    assert found == [], "these lines name an API:\n" + "\n".join(found)
