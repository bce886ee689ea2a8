"""The formats whose calls are Python, channels, or forms of their own, by name."""

from __future__ import annotations

from lutumpy.text_tools.action_syntax import ActionSyntax
from lutumpy.text_tools.escaped_syntax import EscapedSyntax
from lutumpy.text_tools.harmony_syntax import HarmonySyntax
from lutumpy.text_tools.instruction import FUNCTION_LIST, FUNCTIONS, ToolListing
from lutumpy.text_tools.python_syntax import BARE_PYTHON, PythonSyntax
from lutumpy.text_tools.result_form import ResultForm
from lutumpy.text_tools.syntax import CallSyntax
from lutumpy.text_tools.text_format import TextFormat
from lutumpy.text_tools.thinking import THINK

__all__ = ["OTHER_FORMATS"]

_OBSERVATION = ResultForm("Observation: ", "")

OTHER_FORMATS: tuple[TextFormat, ...] = (
    TextFormat(
        name="pythonic",
        syntaxes=(BARE_PYTHON,),
        source="templates of ToolACE and Llama 3.2 in vLLM; vLLM pythonic",
        aliases=("pythonic",),
        listing=FUNCTIONS,
        results=ResultForm('{"output": ', "}", as_json=True),
    ),
    TextFormat(
        name="llama4_pythonic",
        syntaxes=(PythonSyntax(start="<|python_start|>", ends=("<|python_end|>",)), BARE_PYTHON),
        source="template of Llama 4; vLLM llama4_pythonic",
        aliases=("llama4_pythonic",),
        listing=FUNCTION_LIST,
        models=r"llama-?4",
        marks=("<|python_start|>",),
    ),
    TextFormat(
        name="lfm2",
        syntaxes=(PythonSyntax(start="<|tool_call_start|>", ends=("<|tool_call_end|>",)),),
        source="template of LFM2; vLLM lfm2",
        aliases=("lfm2",),
        listing=ToolListing(
            "List of tools: <|tool_list_start|>", "<|tool_list_end|>", in_list=True
        ),
        results=ResultForm("<|tool_response_start|>", "<|tool_response_end|>"),
        models=r"lfm-?2",
        marks=("<|tool_call_start|>",),
    ),
    TextFormat(
        name="olmo3",
        syntaxes=(
            PythonSyntax(start="<function_calls>", ends=("</function_calls>",), in_list=False),
        ),
        source="vLLM olmo3",
        aliases=("olmo3",),
        models=r"olmo-?3",
    ),
    TextFormat(
        name="gemma_tool_code",
        syntaxes=(PythonSyntax(start="```tool_code", ends=("```",), in_list=False),),
        source="Google's guides for Gemma 3; the template for it in vLLM",
        listing=FUNCTION_LIST,
        results=ResultForm("<tool_response>\n", "\n</tool_response>"),
        models=r"gemma-?3\b",
        marks=("```tool_code",),
    ),
    TextFormat(
        name="functiongemma",
        syntaxes=(
            EscapedSyntax(
                start="<start_function_call>", ends=("<end_function_call>",), mark="<escape>"
            ),
        ),
        source="Google's page on FunctionGemma's format; vLLM functiongemma",
        aliases=("functiongemma",),
        results=ResultForm(
            "<start_function_response>response:{plain_name}{value:<escape>",
            "<escape>}<end_function_response>",
            between="",
        ),
        models=r"function-?gemma",
        marks=("<start_function_call>",),
    ),
    TextFormat(
        name="gemma4",
        syntaxes=(EscapedSyntax(start="<|tool_call>", ends=("<tool_call|>",), mark='<|"|>'),),
        source="template of Gemma 4; vLLM gemma4",
        aliases=("gemma4",),
        thinking=(("<|channel>thought", "<channel|>"), *THINK),
        results=ResultForm(
            '<|tool_response>response:{plain_name}{value:<|"|>',
            '<|"|>}<tool_response|>',
            between="",
        ),
        models=r"gemma-?4",
        marks=("<|tool_call>",),
    ),
    TextFormat(
        name="gpt_oss",
        syntaxes=(HarmonySyntax(), HarmonySyntax(start="<|start|>")),
        source="template of gpt-oss; vLLM openai",
        aliases=("openai", "gpt-oss", "GPT-OSS"),
        models=r"gpt-?oss",
        marks=("<|channel|>", "<|message|>"),
    ),
    TextFormat(
        name="qwen_agent",
        syntaxes=(
            CallSyntax(
                "✿FUNCTION✿:",
                ("✿RESULT✿:",),
                json_calls=False,
                name_end="✿ARGS✿:",
                self_ending=True,
            ),
        ),
        source="prompts of Qwen-Agent",
        results=ResultForm("✿RESULT✿: ", ""),
    ),
    TextFormat(
        name="react_json",
        syntaxes=(
            CallSyntax(
                "Action:",
                ("Observation:",),
                json_calls=False,
                name_end="Action Input:",
                self_ending=True,
            ),
        ),
        source="ReAct prompts",
        results=_OBSERVATION,
    ),
    TextFormat(
        name="react_text",
        syntaxes=(ActionSyntax(start="Action:", ends=("Observation:",)),),
        source="ReAct prompts",
        results=_OBSERVATION,
    ),
)
