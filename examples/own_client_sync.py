"""Your own client and your own I/O: the plain, synchronous OpenAI client, with lutumpy for everything but the request.

`OpenAIChat.request` gives the body, `OpenAIChat.response` takes the reply apart; nothing else of the adapter is used.
Runs without a key: the answers come from a test server on this machine.
"""

from __future__ import annotations

from openai import OpenAI
from pydantic import BaseModel

from lutumpy import Finished, NeedsTools, ToolAvailability, ToolRequirement, Toolset, Transcript, tool, tool_input
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Call, Reply, serve


@tool_input(name="look_up", output=str)
class LookUp(BaseModel):
    """Look a word up in the glossary."""

    word: str


@tool_input(name="define", output=None)
class Define(BaseModel):
    """Write a word into the glossary."""

    word: str
    meaning: str


class Glossary(Toolset):
    look_up = tool(LookUp, output=str)
    define = tool(Define, output=None, off=True)


def answer(client: OpenAI, question: str, words: dict[str, str]) -> str:
    """One conversation. The first turn must look something up; `define` is never offered."""
    transcript = Transcript()
    transcript.push_user(question)
    offer = Glossary.offer(
        available=ToolAvailability.only(Glossary.look_up), require=ToolRequirement.specific(Glossary.look_up)
    )
    while True:
        reply = client.chat.completions.create(model="any-model", **OpenAIChat.request(transcript, offer))
        outcome = offer.read(OpenAIChat.response(reply), transcript)
        offer = Glossary.offer()
        match outcome:
            case Finished(result=result):
                return result.text
            case NeedsTools(round=round):
                results = []
                for call in round.calls:
                    if Glossary.look_up.matches(call):
                        meaning = words.get(call.input.word)
                        results.append(call.complete(meaning) if meaning else call.fail("no such word"))
                    else:
                        results.append(call.reject("not now"))
                round.commit(transcript, results)


SCRIPT = [
    Reply(calls=[Call("look_up", {"word": "toolset"}), Call("define", {"word": "toolset", "meaning": "a box"})]),
    Reply(text="A toolset is a class of tools."),
]


def main() -> None:
    with (
        serve(SCRIPT) as server,
        OpenAI(base_url=server.openai_base_url, api_key="no-key-needed") as client,
    ):
        print(answer(client, "What is a toolset?", {"toolset": "a class of tools"}))


if __name__ == "__main__":
    main()
