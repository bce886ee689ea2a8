"""Each line marked `# refused` is an error for mypy --strict and pyright; no other line is.

Nothing of it is run.
"""

from accept_text_tools import Own, Shown

from lutumpy import Session
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.text_tools import TagToolParser, TextTools


class Halves:
    tags = ("<", ">")

    def parse(self, text: str) -> str:
        return text


TextTools("a model")  # refused
TextTools(OpenAIChat("m"), parser=Halves())  # refused
TextTools(OpenAIChat("m"), parser=TagToolParser)  # refused
TextTools(OpenAIChat("m"), guided="yes")  # refused
TagToolParser("<a>")  # refused
Own().parse(b"bytes")  # refused
Session().text_turn(TagToolParser())  # refused
print(Shown().feed("x") + 1)  # refused
