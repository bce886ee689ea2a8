"""A model small enough for every test: a few bytes in a wheel made here, and a server's library
that only pretends.
"""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from lutumpy.local import PackagedModel

CONTENT = b"GGUF" + bytes(range(256)) * 400
PACKAGE = "tiny-model"
MEMBER = "tiny_model/Tiny-1.Q4.gguf"

# What `worker.py` uses of xllamacpp. The server does what its model file says, and keeps a
# connection to `sampling.watch` open for as long as its process lives.
PRETENDED = """
import os, socket, sys, threading
from types import SimpleNamespace


class CommonParams:
    def __init__(self):
        self.model = SimpleNamespace(path="")
        self.sampling = SimpleNamespace(watch=0)
        self.cpuparams = SimpleNamespace(n_threads=-1)
        self.cpuparams_batch = SimpleNamespace(n_threads=-1)
        self.model_alias = set()
        self.hostnames = []
        self.cors_origins = "*"
        self.ui = True
        self.port = self.n_ctx = 0
        self.n_parallel = 1


class Server:
    def __init__(self, params):
        orders = open(params.model.path).read().split()
        print("0.00.000.001 I srv starting", file=sys.stderr)
        print("what native code prints on standard output", flush=True)
        if params.sampling.watch:
            self.watched = socket.create_connection(("127.0.0.1", params.sampling.watch))
        if "hang" in orders:
            sys.stdin.read()
        if "crash" in orders:
            print("0.00.000.002 E srv the sky fell", file=sys.stderr, flush=True)
            os.abort()
        if "refuse" in orders:
            print("0.00.000.002 E srv no such tensor", file=sys.stderr, flush=True)
            raise RuntimeError("Failed to init server")
        if "show" in orders:
            print("parameters", sorted(params.model_alias), params.hostnames, params.n_ctx, params.n_parallel,
                  params.cpuparams.n_threads, params.cors_origins, params.ui, file=sys.stderr, flush=True)
        self.listening_address = "http://127.0.0.1:%d" % (params.port or 1234)
        if "die" in orders:
            threading.Thread(target=self.die).start()

    def die(self):
        self.watched.recv(1)
        print("0.00.000.009 E srv out of luck", file=sys.stderr, flush=True)
        os._exit(7)
"""


def make_wheel(directory: Path, *, member: str = MEMBER, content: bytes = CONTENT) -> Path:
    """A wheel with one file in it, as pip takes it."""
    name = PACKAGE.replace("-", "_")
    wheel = directory / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    files: dict[str, str | bytes] = {
        member: content,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\nRequires-Dist: nothing-like-this\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(
                zipfile.ZipInfo(path), data
            )  # without the time, so that the same wheel is the same bytes
    return wheel


def described(wheel: Path, *, content: bytes = CONTENT) -> PackagedModel:
    data = wheel.read_bytes()
    digests = [hashlib.sha256(piece).hexdigest() for piece in (data, content)]
    return PackagedModel(PACKAGE, "1.0", digests[0], len(data), MEMBER, digests[1], len(content))
