"""Your own client and your own I/O, synchronous: the plain OpenAI client, and lutumpy for
everything but the request.

`OpenAIChat.request` gives the body and `OpenAIChat.response` takes the reply apart; nothing else of
the adapter is used, so proxies, logging, and retries are those of your client. The first turn has
to look something up; `define` is off, so it is never offered, and a model that calls it all the
same is told so.

Run:    python examples/own_client_sync.py            a test server on this machine, no key
        python examples/own_client_sync.py --live     OpenAI, with OPENAI_API_KEY;
                                                      --model NAME for another model,
                                                      OPENAI_BASE_URL for any compatible host
Prints: what was looked up, what could not be called and why, and the answer.
"""

from __future__ import annotations

import argparse

from openai import OpenAI, OpenAIError

from lutumpy import (
    Finished,
    NeedsTools,
    ToolInput,
    ToolRequirement,
    Toolset,
    Transcript,
    tool,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import Call, Reply, serve

MAX_ROUNDS = 5


@tool_input(name="look_up", effect="read")
class LookUp(ToolInput[str]):
    """Look a word up in the glossary."""

    word: str


@tool_input(name="define")
class Define(ToolInput[None]):
    """Write a word into the glossary."""

    word: str
    meaning: str


class Glossary(Toolset):
    look_up = tool(LookUp)
    define = tool(Define, off=True)


def answer(client: OpenAI, model: str, question: str, words: dict[str, str]) -> str:
    """One conversation; its transcript could be kept, and sent to any provider."""
    transcript = Transcript()
    transcript.push_system("Answer from the glossary, in one sentence.")
    transcript.push_user(question)
    offer = Glossary.offer(require=ToolRequirement.specific(Glossary.look_up))
    for _ in range(MAX_ROUNDS):
        reply = client.chat.completions.create(model=model, **OpenAIChat.request(transcript, offer))
        outcome = offer.read(OpenAIChat.response(reply), transcript)
        offer = Glossary.offer()  # from now on the model may answer
        match outcome:
            case Finished(result=result):
                return result.refusal or result.text
            case NeedsTools(round=round):
                results = []
                for call in round.calls:
                    if Glossary.look_up.matches(call):
                        meaning = words.get(call.input.word)
                        print(f"{call.input.word}: {meaning}")
                        results.append(
                            call.complete(meaning) if meaning else call.fail("no such word")
                        )
                    else:
                        results.append(call.reject("not in this conversation"))
                for issue in round.issues:
                    print(f"{issue.metadata.name}: {issue.detail}")
                round.commit(transcript, results)
    return f"No answer after {MAX_ROUNDS} rounds."


SCRIPT = [
    Reply(
        calls=[
            Call("look_up", {"word": "toolset"}),
            Call("define", {"word": "toolset", "meaning": "a box"}),
        ]
    ),
    Reply(text="A toolset is a class of tools."),
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    question, words = "What is a toolset?", {"toolset": "a class of tools"}
    if options.live:
        try:
            with OpenAI() as client:
                print(answer(client, options.model, question, words))
        except OpenAIError as error:
            parser.exit(2, f"{error}\n")
    else:
        with (
            serve(SCRIPT) as server,
            OpenAI(base_url=server.openai_base_url, api_key="no key needed") as client,
        ):
            print(answer(client, options.model, question, words))


if __name__ == "__main__":
    main()
