"""The formats whose calls are JSON between tags, or JSON alone, by name."""

from __future__ import annotations

from lutumpy.text_tools.instruction import FUNCTION_LIST, FUNCTIONS, ToolListing
from lutumpy.text_tools.keyed_syntax import KeyedSyntax
from lutumpy.text_tools.result_form import ResultForm
from lutumpy.text_tools.syntax import (
    HERMES,
    LLAMA_FUNCTION,
    LLAMA_PYTHON_TAG,
    MISTRAL,
    TOOL_CALL,
    CallSyntax,
)
from lutumpy.text_tools.text_format import TextFormat
from lutumpy.text_tools.thinking import MISTRAL_THINK, THINK

__all__ = ["JSON_FORMATS", "RESPONSES", "TOOLS"]

TOOLS = ToolListing("<tools>\n", "\n</tools>", "function")
RESPONSES = ResultForm("<tool_response>\n", "\n</tool_response>")

_MISTRAL_TOOLS = ToolListing("[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", in_list=True)
_CALLS_LIST = CallSyntax("<tool_calls>", ("</tool_calls>",), arguments_key="arguments")
_FUNCTOOLS = CallSyntax("functools", arguments_key="arguments", self_ending=True)
_BARE_JSON = KeyedSyntax(start="", ends=("<|eot_id|>",), arguments_keys=("parameters", "arguments"))
_BARE_LIST = KeyedSyntax(start="", in_list=True)
_DEEPSEEK_AROUND = ("<\uff5ctool▁calls▁begin\uff5c>", "<\uff5ctool▁calls▁end\uff5c>")
_DEEPSEEK_OUTPUT = ("<\uff5ctool▁output▁begin\uff5c>", "<\uff5ctool▁output▁end\uff5c>")
_COHERE_THINK = (("<|START_THINKING|>", "<|END_THINKING|>"), *THINK)
_COHERE_TOOLS = ToolListing("# Available Tools\n```json\n", "\n```", entry="schema", in_list=True)
_COHERE_RESPONSE = ("<|START_RESPONSE|>", "<|END_RESPONSE|>")
_COHERE_TEXT = ("<|START_TEXT|>", "<|END_TEXT|>")


def _cohere_syntax(*around: str) -> KeyedSyntax:
    return KeyedSyntax(
        start="<|START_ACTION|>",
        ends=("<|END_ACTION|>",),
        around=around,
        name_key="tool_name",
        arguments_keys=("parameters",),
        other_keys=("tool_call_id",),
        in_list=True,
    )


def _cohere_results(content: str) -> ResultForm:
    before, behind = content.split("CONTENT")
    return ResultForm(
        f'{{"tool_call_id": "{{index}}", "results": {{"0": {before}',
        f'{behind}}}, "is_error": {{failed}}}}',
        "<|START_TOOL_RESULT|>[\n",
        "\n]<|END_TOOL_RESULT|>",
        ",\n",
        as_json=True,
    )


JSON_FORMATS: tuple[TextFormat, ...] = (
    TextFormat(name="ambi", syntaxes=(TOOL_CALL,), source="this library's own"),
    TextFormat(
        name="hermes",
        syntaxes=(HERMES,),
        source="templates of Hermes 2 Pro, Qwen2.5 and Qwen3; vLLM hermes",
        aliases=("hermes", "qwen25", "qwen", "qwen3_json", "trinity", "Hermes 2 Pro"),
        listing=TOOLS,
        results=RESPONSES,
        models=r"hermes|qwen|qwq|mimo-?vl",
        marks=('<tool_call>\\n{"name"',),
    ),
    TextFormat(
        name="ernie45",
        syntaxes=(HERMES,),
        source="vLLM ernie45",
        aliases=("ernie45",),
        models=r"ernie-?4\.?5",
    ),
    TextFormat(
        name="mistral_v3",
        syntaxes=(MISTRAL,),
        source="template of Mistral Nemo; vLLM mistral",
        aliases=("mistral", "Mistral Nemo"),
        thinking=MISTRAL_THINK,
        listing=_MISTRAL_TOOLS,
        results=ResultForm(
            '[TOOL_RESULTS]{"content": ',
            ', "call_id": {id}}[/TOOL_RESULTS]',
            between="",
            as_json=True,
        ),
        models=r"mi[sx]tral|magistral|devstral|codestral",
        marks=("[TOOL_CALLS]",),
    ),
    TextFormat(
        name="mistral_v3_ids",
        syntaxes=(MISTRAL,),
        source="template of Mistral Nemo, which writes ids of nine characters",
        aliases=("mistral",),
        thinking=MISTRAL_THINK,
        listing=_MISTRAL_TOOLS,
        results=ResultForm(
            '[TOOL_RESULTS]{"content": ',
            ', "call_id": {id}}[/TOOL_RESULTS]',
            between="",
            as_json=True,
        ),
    ),
    TextFormat(
        name="mistral_v11",
        syntaxes=(MISTRAL,),
        source="template of Ministral 3",
        aliases=("mistral",),
        thinking=MISTRAL_THINK,
        listing=_MISTRAL_TOOLS,
        results=ResultForm("[TOOL_RESULTS]", "[/TOOL_RESULTS]", between=""),
        marks=("[TOOL_CALLS]", "[ARGS]"),
    ),
    TextFormat(
        name="mistral_v11_id",
        syntaxes=(MISTRAL,),
        source="template of Mistral Small 3.2",
        aliases=("mistral",),
        thinking=MISTRAL_THINK,
        listing=_MISTRAL_TOOLS,
        results=ResultForm("[TOOL_RESULTS]{plain_id}[TOOL_CONTENT]", "[/TOOL_RESULTS]", between=""),
        marks=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
    ),
    TextFormat(
        name="mistral_v7_bare",
        syntaxes=(MISTRAL,),
        source="vLLM mistral, which reads a name with its arguments behind it",
        aliases=("mistral",),
        thinking=MISTRAL_THINK,
        listing=_MISTRAL_TOOLS,
        results=ResultForm("[TOOL_RESULTS]", "[/TOOL_RESULTS]", between=""),
    ),
    TextFormat(
        name="llama3_tag",
        syntaxes=(LLAMA_PYTHON_TAG,),
        source="vLLM llama3_json, SGLang llama3",
        aliases=("llama3_json", "llama3", "Llama 3.x"),
        listing=FUNCTIONS,
    ),
    TextFormat(
        name="llama3_fn",
        syntaxes=(LLAMA_FUNCTION,),
        source="template of Functionary 3.1",
        aliases=("Functionary v3.1 Llama 3.1",),
        listing=FUNCTIONS,
        models=r"functionary.*3\.1",
        marks=("<function=", "end_tag => `</function>`"),
    ),
    TextFormat(
        name="llama3_bare",
        syntaxes=(_BARE_JSON,),
        source="templates of Llama 3.1 to 3.3; vLLM llama3_json",
        aliases=("llama3_json", "llama4_json", "llama3", "Llama 3.x"),
        listing=FUNCTIONS,
        models=r"llama-?3",
        marks=("<|python_tag|>",),
    ),
    TextFormat(
        name="functionary_v32",
        syntaxes=(
            CallSyntax(
                ">>>",
                json_calls=False,
                name_end="\n",
                self_ending=True,
                text_name="all",
                opened=True,
            ),
        ),
        source="template of Functionary 3.2",
        aliases=("Functionary v3.2",),
        listing=FUNCTIONS,
        models=r"functionary.*3\.2",
        marks=(">>>${recipient}",),
    ),
    TextFormat(
        name="granite30",
        syntaxes=(CallSyntax("<|tool_call|>", arguments_key="arguments", self_ending=True),),
        source="template of Granite 3; vLLM granite",
        aliases=("granite", "Granite"),
        listing=FUNCTION_LIST,
        models=r"granite-?3\.0",
    ),
    TextFormat(
        name="granite31",
        syntaxes=(CallSyntax("<tool_call>", ("</tool_call>",), "arguments", self_ending=True),),
        source="template of Granite 3.3; vLLM granite",
        aliases=("granite",),
        listing=FUNCTION_LIST,
        models=r"granite-?3",
    ),
    TextFormat(
        name="granite4",
        syntaxes=(HERMES,),
        source="template of Granite 4.0; vLLM granite4",
        aliases=("granite4",),
        listing=TOOLS,
        results=RESPONSES,
        models=r"granite-?4",
        marks=("<|start_of_role|>", "<tool_call></tool_call>"),
    ),
    TextFormat(
        name="granite_20b_fc",
        syntaxes=(CallSyntax("<function_call>", arguments_key="arguments", self_ending=True),),
        source="vLLM granite-20b-fc",
        aliases=("granite-20b-fc",),
        listing=FUNCTION_LIST,
        models=r"granite-20b",
    ),
    TextFormat(
        name="jamba",
        syntaxes=(_CALLS_LIST,),
        source="vLLM jamba",
        aliases=("jamba",),
        models=r"jamba",
    ),
    TextFormat(
        name="hunyuan_a13b",
        syntaxes=(_CALLS_LIST,),
        source="template of Hunyuan A13B; vLLM hunyuan_a13b",
        aliases=("hunyuan_a13b", "hunyuan"),
        results=ResultForm("<tool_response>", "</tool_response>"),
        models=r"hunyuan",
    ),
    TextFormat(
        name="minimax_m1",
        syntaxes=(_CALLS_LIST,),
        source="template of MiniMax-M1",
        aliases=("minimax",),
        listing=ToolListing("<tools>\n", "\n</tools>"),
        results=ResultForm("tool result: ", "\n", between="\n"),
        models=r"minimax-?m1",
        marks=("<tool_calls></tool_calls>", "tool result: "),
    ),
    TextFormat(
        name="internlm2",
        syntaxes=tuple(
            CallSyntax(start, ("<|action_end|>",), arguments_key="parameters")
            for start in ("<|action_start|><|plugin|>", "<|action_start|> <|plugin|>")
        ),
        source="template of InternLM 2; vLLM internlm",
        aliases=("internlm", "interns1"),
        listing=ToolListing("Plugins:\n", entry="schema", in_list=True),
        models=r"intern-?(?:lm|s1)",
        marks=("<|action_start|>",),
    ),
    TextFormat(
        name="longcat",
        syntaxes=(
            CallSyntax("<longcat_tool_call>", ("</longcat_tool_call>",), arguments_key="arguments"),
        ),
        source="vLLM longcat",
        aliases=("longcat",),
        thinking=(("<longcat_think>", "</longcat_think>"), *THINK),
        models=r"longcat",
        marks=("<longcat_tool_call>",),
    ),
    TextFormat(
        name="nemotron",
        syntaxes=(CallSyntax("<TOOLCALL>", ("</TOOLCALL>",), arguments_key="arguments"),),
        source="template of Nemotron Nano v2",
        aliases=("Nemotron V2",),
        listing=ToolListing(
            "<AVAILABLE_TOOLS>", "</AVAILABLE_TOOLS>", entry="schema", in_list=True
        ),
        results=ResultForm("", "", "<TOOL_RESPONSE>[", "]</TOOL_RESPONSE>", ", ", as_json=True),
        models=r"nemotron",
        marks=("<TOOLCALL>",),
    ),
    TextFormat(
        name="phi4_mini",
        syntaxes=(_FUNCTOOLS,),
        source="template of Phi-4 mini; vLLM phi4_mini_json",
        aliases=("phi4_mini_json",),
        listing=FUNCTIONS,
        models=r"phi-?4-mini",
        marks=("functools[",),
    ),
    TextFormat(
        name="phi4",
        syntaxes=(CallSyntax("<|tool_call|>", ("<|/tool_call|>",), arguments_key="arguments"),),
        source="template of Phi-4 mini as its makers publish it",
        listing=ToolListing("<|tool|>", "<|/tool|>", entry="schema", in_list=True),
        models=r"phi-?4",
        marks=("<|/tool_call|>",),
    ),
    TextFormat(
        name="gigachat3",
        syntaxes=(
            CallSyntax("function call<|role_sep|>", arguments_key="arguments", self_ending=True),
            CallSyntax("<|function_call|>", arguments_key="arguments", self_ending=True),
        ),
        source="templates of GigaChat 3 and 3.1; vLLM gigachat3",
        aliases=("gigachat3",),
        models=r"gigachat-?3",
        marks=("function call<|role_sep|>",),
    ),
    TextFormat(
        name="deepseek_v31",
        syntaxes=(
            CallSyntax(
                "<\uff5ctool▁call▁begin\uff5c>",
                ("<\uff5ctool▁call▁end\uff5c>",),
                json_calls=False,
                name_end="<\uff5ctool▁sep\uff5c>",
                around=_DEEPSEEK_AROUND,
            ),
        ),
        source="template of DeepSeek-V3.1; vLLM deepseek_v31",
        aliases=("deepseek_v31", "deepseekv31", "DeepSeek V3.1"),
        results=ResultForm(*_DEEPSEEK_OUTPUT, between=""),
        models=r"deepseek.*v?3\.1",
        marks=("<\uff5ctool▁call▁begin\uff5c>",),
    ),
    TextFormat(
        name="deepseek_v3",
        syntaxes=(
            CallSyntax(
                "<\uff5ctool▁call▁begin\uff5c>function<\uff5ctool▁sep\uff5c>",
                ("<\uff5ctool▁call▁end\uff5c>",),
                json_calls=False,
                name_end="\n",
                fenced=True,
                around=_DEEPSEEK_AROUND,
            ),
        ),
        source="templates of DeepSeek-V3 and R1; vLLM deepseek_v3",
        aliases=("deepseek_v3", "deepseekv3", "DeepSeek R1"),
        listing=ToolListing("Functions:\n```json\n", "\n```", "function"),
        results=ResultForm(
            *_DEEPSEEK_OUTPUT,
            "<\uff5ctool▁outputs▁begin\uff5c>",
            "<\uff5ctool▁outputs▁end\uff5c>",
        ),
        models=r"deepseek",
        marks=("<\uff5ctool▁call▁begin\uff5c>", "```json"),
    ),
    TextFormat(
        name="kimi_k2",
        syntaxes=(
            CallSyntax(
                "<|tool_call_begin|>",
                ("<|tool_call_end|>",),
                json_calls=False,
                name_end="<|tool_call_argument_begin|>",
                name_prefix="functions.",
                counted=True,
                around=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
            ),
        ),
        source="template of Kimi K2; vLLM kimi_k2",
        aliases=("kimi_k2", "Kimi K2"),
        listing=ToolListing("Functions:\n", noun="function", in_list=True),
        results=ResultForm("## Return of functions.{plain_name}:{index}\n", ""),
        models=r"kimi",
        marks=("<|tool_calls_section_begin|>",),
    ),
    TextFormat(
        name="command_r7b",
        syntaxes=(_cohere_syntax(*_COHERE_RESPONSE),),
        source="template of Command R7B; vLLM cohere_command3",
        aliases=("cohere_command3", "Command R7B"),
        thinking=_COHERE_THINK,
        listing=_COHERE_TOOLS,
        results=_cohere_results("CONTENT"),
        models=r"command-?(?:r7b|a)\b",
        marks=("<|START_ACTION|>",),
    ),
    TextFormat(
        name="cohere_command4",
        syntaxes=(_cohere_syntax(*_COHERE_RESPONSE, *_COHERE_TEXT),),
        source="template of Cohere's mixtures of experts; vLLM and SGLang cohere_command4",
        aliases=("cohere_command4",),
        thinking=_COHERE_THINK,
        listing=_COHERE_TOOLS,
        results=_cohere_results('{"content": CONTENT}'),
        models=r"command-?a-?plus|north-mini-code|command-?4",
        marks=("<|START_ACTION|>", "<|START_TEXT|>"),
    ),
    TextFormat(
        name="inkling",
        syntaxes=(
            KeyedSyntax(
                start="<|content_invoke_tool_json|>",
                ends=("<|end_message|>", "<|content_model_end_sampling|>"),
                around=(
                    "<|message_model|>",
                    "<|content_text|>",
                    "<|end_message|>",
                    "<|content_model_end_sampling|>",
                ),
                arguments_keys=("args",),
                headed=True,
            ),
        ),
        source="vLLM and SGLang inkling",
        aliases=("inkling",),
        thinking=(("<|content_thinking|>", "<|end_message|>"), *THINK),
        models=r"inkling",
        marks=("<|content_invoke_tool_json|>",),
    ),
    TextFormat(
        name="apertus",
        syntaxes=(
            KeyedSyntax(
                start="<|tools_prefix|>", ends=("<|tools_suffix|>",), name_key="", in_list=True
            ),
        ),
        source="template of Apertus; vLLM apertus",
        aliases=("apertus", "apertus2509", "Apertus"),
        thinking=(("<|inner_prefix|>", "<|inner_suffix|>"), *THINK),
        results=ResultForm("", "", "Results: [", "]", ", ", as_json=True),
        models=r"apertus",
        marks=("<|tools_prefix|>",),
    ),
    TextFormat(
        name="plamo3",
        syntaxes=(
            CallSyntax(
                "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>",
                ("<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>",),
                json_calls=False,
                name_end="<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>"
                "<|plamo:constrain|>json<|plamo:msg|>",
                around=(
                    "<|plamo:begin_tool_requests:plamo|>",
                    "<|plamo:end_tool_requests:plamo|>",
                ),
            ),
        ),
        source="vLLM plamo3",
        aliases=("plamo3",),
        thinking=(("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"), *THINK),
        models=r"plamo-?3",
        marks=("<|plamo:begin_tool_name:plamo|>",),
    ),
    TextFormat(
        name="xlam_bare",
        syntaxes=(_BARE_LIST,),
        source="template of xLAM; vLLM xlam",
        aliases=("xlam",),
        listing=FUNCTIONS,
        models=r"xlam",
    ),
    TextFormat(
        name="xlam_fence",
        syntaxes=(KeyedSyntax(start="", in_list=True, in_fence=True),),
        source="vLLM xlam",
        aliases=("xlam",),
        listing=FUNCTIONS,
    ),
    TextFormat(
        name="firefunction",
        syntaxes=(_FUNCTOOLS,),
        source="template of FireFunction v2",
        aliases=("FireFunction v2",),
        listing=FUNCTION_LIST,
        models=r"firefunction",
    ),
    TextFormat(
        name="generic_json",
        syntaxes=(KeyedSyntax(start="", in_list=True),),
        source="llama.cpp's generic format",
        aliases=("Generic",),
    ),
)
