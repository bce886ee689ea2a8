"""Nested toolsets: each part of a program declares its tools, handlers and hooks; the assistant
puts them together.

Calendar and mail know nothing of each other, nor of the assistant. A nested toolset is flattened:
the model sees one list of tools, and `Assistant.mail[Mail.send]` is the tool of `Mail` as a tool of
the assistant, with its types.

Run:    python examples/nested_toolsets.py            a scripted model, no key
        python examples/nested_toolsets.py --live     OpenAI, with OPENAI_API_KEY;
                                                      --model NAME for another model,
                                                      OPENAI_BASE_URL for any compatible host
Prints: the tools on offer, what mail's own hook rejected, each result, and the answer.
"""

from __future__ import annotations

import argparse
import asyncio

from lutumpy import (
    AdapterError,
    Finished,
    Model,
    NeedsTools,
    Reject,
    RunNormally,
    Session,
    ToolDecision,
    ToolInput,
    ToolMetadata,
    Toolset,
    hook_impl,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 8

# --- the calendar ---------------------------------------------------------------------------------


@tool_fn(effect="read")
async def free_hours(day: str) -> list[str]:
    """The free hours of a day.

    Args:
        day: A day of the week.
    """
    return {"Monday": ["9:00", "15:00"], "Tuesday": ["11:00"]}.get(day, [])


class Calendar(Toolset):
    free_hours = tool(free_hours)


# --- mail: its tools, and a hook that goes wherever they go ---------------------------------------


@tool_input(name="send_mail")
class SendMail(ToolInput[str]):
    """Send a mail."""

    to: str
    text: str


@tool_input(name="empty_mailbox")
class EmptyMailbox(ToolInput[None]):
    """Delete every mail."""


class Mail(Toolset):
    send = tool(SendMail)
    empty = tool(EmptyMailbox, off=True)


class OnlyColleagues:
    @hook_impl
    def send_mail_hook(
        self, metadata: ToolMetadata, input: SendMail
    ) -> ToolDecision[SendMail, str]:
        if not input.to.endswith("@example.org"):
            return Reject("mail goes to addresses of example.org only")
        return RunNormally(input)


# --- the assistant --------------------------------------------------------------------------------


class Assistant(Toolset):
    calendar = nested(Calendar)
    mail = nested(
        Mail
    )  # nested(Mail, off=True) would leave all of it out until it is made available


def dispatcher(sent: list[SendMail]) -> Dispatcher[Assistant]:
    """What runs which tool.

    Every tool that is not a function needs a handler, also one that is off.
    """
    dispatch = Dispatcher(Assistant)

    @dispatch.on(Assistant.mail[Mail.send])
    async def send(input: SendMail) -> str:
        sent.append(input)
        return f"sent to {input.to}"

    @dispatch.on(Assistant.mail[Mail.empty])
    async def empty(input: EmptyMailbox) -> None:
        sent.clear()

    return dispatch


async def talk(llm: Model, question: str, sent: list[SendMail]) -> str:
    hooks = Assistant.hooks()
    hooks.nested(Mail).register(OnlyColleagues())
    dispatch, executor = dispatcher(sent), ToolExecutor()
    session = Session()
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        match await session.text_turn(llm, tools=Assistant).collect():
            case Finished(result=result):
                return result.refusal or result.text
            case NeedsTools(round=round):
                plan = await round.apply_hooks(hooks)
                for rejected in plan.rejected:
                    print(f"  {rejected.metadata.name} rejected: {rejected.reason}")
                results = await executor.run(plan.pending, dispatch)
                for ran in results:
                    print(f"  {ran.metadata.name} {ran.outcome}: {ran.content}")
                plan.commit(session, results)
    return f"No answer after {MAX_ROUNDS} rounds."


SCRIPT = [
    Reply(calls=[Call("free_hours", {"day": "Monday"}), Call("free_hours", {"day": "Tuesday"})]),
    Reply(
        calls=[
            Call("send_mail", {"to": "ann@example.org", "text": "Monday at 15:00?"}),
            Call("send_mail", {"to": "bob@example.com", "text": "Monday at 15:00?"}),
        ]
    ),
    Reply(text="I asked Ann for Monday at 15:00. I may not write to Bob's address."),
]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    llm: Model = OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)
    sent: list[SendMail] = []
    print("on offer:", *Assistant.default_selectors())
    try:
        print(
            await talk(
                llm, "Ask ann@example.org and bob@example.com for an hour early in the week.", sent
            )
        )
    except AdapterError as error:
        parser.exit(2, f"{error}\n")
    print(f"{len(sent)} mail sent")


if __name__ == "__main__":
    asyncio.run(main())
