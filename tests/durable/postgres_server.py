"""A Postgres server of the tests' own, on a socket in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["find_programs", "has_pgbouncer", "serve_pgbouncer", "serve_postgres", "why_not"]


def find_programs() -> Path | None:
    """The folder with `initdb` and `pg_ctl`; `None` where there is none."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    # Debian keeps them beside the path, by version.
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return versions[-1].parent if versions else None


def why_not() -> str:
    """Why no server can be started here; empty where one can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed"
    if find_programs() is None:
        return "there is no initdb"
    if os.getuid() == 0 and _user() is None:
        return "a server doesn't run as root, and there is no user for it"
    return ""


def _user() -> str | None:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    return None


@contextmanager
def serve_pgbouncer(url: str) -> Iterator[str]:
    """A pgbouncer in transaction mode in front of a server, with two sessions; gives its URL."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    assert program is not None
    folder = Path(tempfile.mkdtemp(prefix="lutumpy-pgb-"))
    server = url.partition("host=")[2]
    (folder / "bouncer.ini").write_text(
        f"[databases]\npostgres = host={server} user=tester\n[pgbouncer]\nlisten_addr =\n"
        f"listen_port = 6432\nunix_socket_dir = {folder}\nauth_type = any\n"
        "pool_mode = transaction\ndefault_pool_size = 2\n"
    )
    as_user: list[str] = []
    if os.getuid() == 0:
        user = _user()
        assert user is not None
        shutil.chown(folder, user)
        as_user = ["-u", user]
    folder.chmod(0o755)
    process = subprocess.Popen(
        [program, *as_user, "-q", str(folder / "bouncer.ini")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 30
        while not (folder / ".s.PGSQL.6432").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield f"postgresql://tester@/postgres?host={folder}&port=6432"
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def has_pgbouncer() -> bool:
    """Whether one can be started here."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is not None


@contextmanager
def serve_postgres() -> Iterator[str]:
    """A server as long as the block runs; gives its URL."""
    programs = find_programs()
    assert programs is not None
    # The path of a socket may have about 100 characters, so not below pytest's own folder.
    folder = Path(tempfile.mkdtemp(prefix="lutumpy-pg-"))
    as_user: list[str] = []
    if os.getuid() == 0:
        user = _user()
        assert user is not None
        shutil.chown(folder, user)
        folder.chmod(0o700)
        as_user = ["setpriv", f"--reuid={user}", "--clear-groups"]
        as_user.append(f"--regid={pwd.getpwnam(user).pw_gid}")
    data = folder / "data"

    def run(*command: str) -> None:
        done = subprocess.run(
            [*as_user, *command], capture_output=True, text=True, cwd=folder, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr

    try:
        run(str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "tester", "-N")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        log = str(folder / "log")
        run(str(programs / "pg_ctl"), "-D", str(data), "-o", options, "-l", log, "-w", "start")
        try:
            folder.chmod(0o755)
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            run(str(programs / "pg_ctl"), "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
