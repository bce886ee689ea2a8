"""`lutumpy demo`: the one command that needs no command line library."""

from __future__ import annotations

import argparse
import asyncio
import functools
import io
import sys
from collections.abc import Sequence

from lutumpy import AdapterError
from lutumpy.errors import UnknownApiError

__all__ = ["main"]


def main(argv: Sequence[str]) -> int:
    """Run the demo; gives the exit code: 0, 1 when a provider failed, 2 when it can't run as it was
    asked to.
    """
    # Imported late: these load half of the library.
    try:
        from lutumpy.demo import DemoError, provider_names, run

        names = provider_names()
    except (ImportError, UnknownApiError) as error:
        return _fail(str(error))
    parser = _make_parser(names)
    try:
        arguments = parser.parse_args(argv)
        if arguments.local and (
            arguments.provider != "openai-chat"
            or arguments.live
            or arguments.hooks
            or arguments.stream
        ):
            parser.error(
                "--local is a conversation of its own: "
                "only --model goes with it, and names a GGUF file"
            )
        alone = parser.parse_args(["--durable"])
        if arguments.durable and arguments != alone:
            parser.error("--durable is a conversation of its own: no other option goes with it")
        if arguments.model is not None and arguments.provider == "all":
            parser.error("--model names a model of one provider: give --provider too")
    except SystemExit as ended:  # argparse has printed the help, or what is wrong
        return ended.code if isinstance(ended.code, int) else 0
    if arguments.local:
        return _demo_local(arguments.model)
    if arguments.durable:
        return _demo_durable()
    providers = names if arguments.provider == "all" else (arguments.provider,)
    _take_any_text()
    try:
        for provider in providers:
            asyncio.run(
                run(
                    provider,
                    live=arguments.live,
                    model=arguments.model,
                    hooks=arguments.hooks,
                    stream=arguments.stream,
                    write=functools.partial(print, flush=arguments.stream),
                )
            )
    except DemoError as error:
        return _fail(str(error))
    except AdapterError as error:
        return _fail(f"the provider did not answer: {error}", 1)
    return 0


def _demo_local(model: str | None) -> int:
    """The demo with a model on this machine."""
    try:
        from lutumpy.local import FetchError, LocalServerError
        from lutumpy.local.demo import run_local
    except ImportError as error:
        return _fail(str(error))
    _take_any_text()
    try:
        asyncio.run(run_local(model=model))
    except (ImportError, FetchError, LocalServerError) as error:
        return _fail(str(error))
    except AdapterError as error:
        return _fail(f"the local model did not answer: {error}", 1)
    return 0


def _demo_durable() -> int:
    """The demo of a process that dies in the middle of a payment."""
    try:
        from lutumpy.demo import DurableDemoError, run_durable
    except ImportError as error:
        return _fail(str(error))
    _take_any_text()
    try:
        run_durable(functools.partial(print, flush=True))
    except DurableDemoError as error:
        return _fail(str(error))
    return 0


def _take_any_text() -> None:
    # A model writes what a terminal may not know.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _make_parser(providers: Sequence[str]) -> argparse.ArgumentParser:
    demo = argparse.ArgumentParser(
        prog="lutumpy demo",
        description="A conversation with several rounds, parallel calls, and an invalid call that "
        "the model corrects. Without --live it goes through the provider's SDK to a test server on "
        "this machine: no key, no network.",
    )
    demo.add_argument(
        "--provider",
        choices=[*providers, "all"],
        default="openai-chat",
        help="whose API (default: openai-chat)",
    )
    demo.add_argument(
        "--live", action="store_true", help="the real API, with the key from the environment"
    )
    demo.add_argument(
        "--local", action="store_true", help="a real model on this machine, fetched once (98 MB)"
    )
    demo.add_argument(
        "--durable",
        action="store_true",
        help="a process dies in the middle of a payment, and another goes on",
    )
    demo.add_argument(
        "--hooks",
        action="store_true",
        help="a cache and an approval gate decide before calls are run",
    )
    demo.add_argument(
        "--stream", action="store_true", help="take the answers as streams, and print what arrives"
    )
    demo.add_argument(
        "--model", metavar="NAME", help="another model than the provider's default here"
    )
    return demo


def _fail(message: str, code: int = 2) -> int:
    print(f"lutumpy: {message}", file=sys.stderr)
    return code
