"""The ways in which open models write calls, by name.

Names and texts are those of the servers' own parsers and of the models' chat templates: vLLM and
SGLang (`--tool-call-parser`) and llama.cpp (`common_chat_format_name`).
"""

# One row says all of a format: its syntaxes, the texts around thinking, what servers call it, and
# how a model's name or template tells that it is the one. An alias may stand in several rows: a
# server's parser that reads several formats is read as all of them.

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lutumpy.text_tools.action_syntax import ActionSyntax
from lutumpy.text_tools.escaped_syntax import EscapedSyntax
from lutumpy.text_tools.harmony_syntax import HarmonySyntax
from lutumpy.text_tools.keyed_syntax import KeyedSyntax
from lutumpy.text_tools.python_syntax import PythonSyntax
from lutumpy.text_tools.scan_tags import Syntax
from lutumpy.text_tools.syntax import (
    HERMES,
    LLAMA_FUNCTION,
    LLAMA_PYTHON_TAG,
    MISTRAL,
    TOOL_CALL,
    CallSyntax,
)
from lutumpy.text_tools.thinking import THINK
from lutumpy.text_tools.xml_syntax import XmlSyntax

__all__ = ["FORMATS", "TextFormat"]


@dataclass(frozen=True, slots=True)
class TextFormat:
    """One way in which models write calls.

    Attributes:
        name: Its name here.
        syntaxes: How calls are written; instructions show the first.
        aliases: What vLLM, SGLang and llama.cpp call it.
        thinking: Pairs of texts around thinking.
        models: A regular expression that finds it in the name of a model; empty where no model
            is known to write it by default.
        marks: A text that only templates of this format hold; empty where none is known.
    """

    name: str
    syntaxes: tuple[Syntax, ...]
    aliases: tuple[str, ...] = ()
    thinking: tuple[tuple[str, str], ...] = field(default=THINK)
    models: str = ""
    marks: str = ""


_MISTRAL_THINK = (("[THINK]", "[/THINK]"), *THINK)
_CALLS_LIST = CallSyntax("<tool_calls>", ("</tool_calls>",), arguments_key="arguments")
_FUNCTOOLS = CallSyntax("functools", arguments_key="arguments", self_ending=True)
_BARE_JSON = KeyedSyntax(start="", ends=("<|eot_id|>",), arguments_keys=("parameters", "arguments"))
_BARE_LIST = KeyedSyntax(start="", in_list=True)
_BARE_PYTHON = PythonSyntax(start="")
_DEEPSEEK_AROUND = ("<\uff5ctool▁calls▁begin\uff5c>", "<\uff5ctool▁calls▁end\uff5c>")
_QWEN_XML = XmlSyntax(
    start="<tool_call>",
    ends=("</tool_call>",),
    call=("<function=", ">"),
    call_end="</function>",
)
# Qwen's coders leave the outer tag out now and then.
_QWEN_XML_INNER = XmlSyntax(start="<function=", ends=("</function>",), name_end=">")
_INVOKE = XmlSyntax(
    start="<function_calls>",
    ends=("</function_calls>",),
    call=('<invoke name="', '">'),
    call_end="</invoke>",
    key=('<parameter name="', '">'),
    lines=False,
)

_DSML = XmlSyntax(
    start="<\uff5cDSML\uff5cfunction_calls>",
    ends=("</\uff5cDSML\uff5cfunction_calls>",),
    call=('<\uff5cDSML\uff5cinvoke name="', '">'),
    call_end="</\uff5cDSML\uff5cinvoke>",
    key=('<\uff5cDSML\uff5cparameter name="', '">'),
    value_end="</\uff5cDSML\uff5cparameter>",
    lines=False,
    marks_texts=True,
)
_DSML_V4 = replace(
    _DSML,
    start="<\uff5cDSML\uff5ctool_calls>",
    ends=("</\uff5cDSML\uff5ctool_calls>",),
)
_ARG_KEYS = XmlSyntax(
    start="<tool_call>",
    ends=("</tool_call>",),
    key=("<arg_key>", "</arg_key>"),
    value_start="<arg_value>",
    value_end="</arg_value>",
    lines=False,
)

FORMATS: tuple[TextFormat, ...] = (
    TextFormat("ambi", (TOOL_CALL,)),
    TextFormat(
        "hermes",
        (HERMES,),
        ("hermes", "qwen25", "qwen", "trinity", "Hermes 2 Pro"),
        models=r"hermes|qwen|qwq",
        marks='<tool_call>\\n{"name"',
    ),
    TextFormat("ernie45", (HERMES,), ("ernie45",), models=r"ernie-?4\.?5"),
    TextFormat(
        "mistral_v3",
        (MISTRAL,),
        ("mistral", "Mistral Nemo"),
        _MISTRAL_THINK,
        models=r"mi[sx]tral|magistral|devstral|codestral",
        marks="[TOOL_CALLS]",
    ),
    TextFormat("mistral_v3_ids", (MISTRAL,), ("mistral",), _MISTRAL_THINK),
    TextFormat("mistral_v11", (MISTRAL,), ("mistral",), _MISTRAL_THINK),
    TextFormat("mistral_v11_id", (MISTRAL,), ("mistral",), _MISTRAL_THINK),
    TextFormat("mistral_v7_bare", (MISTRAL,), ("mistral",), _MISTRAL_THINK),
    TextFormat(
        "llama3_tag",
        (LLAMA_PYTHON_TAG,),
        ("llama3_json", "llama3", "Llama 3.x"),
    ),
    TextFormat("llama3_fn", (LLAMA_FUNCTION,), ("Functionary v3.1 Llama 3.1",)),
    TextFormat(
        "llama3_bare",
        (_BARE_JSON,),
        ("llama3_json", "llama4_json", "llama3", "Llama 3.x"),
        models=r"llama-?3",
        marks="<|python_tag|>",
    ),
    TextFormat(
        "functionary_v32",
        (CallSyntax(">>>", json_calls=False, name_end="\n", self_ending=True, text_name="all"),),
        ("Functionary v3.2",),
        models=r"functionary.*3\.2",
    ),
    TextFormat(
        "granite30",
        (CallSyntax("<|tool_call|>", arguments_key="arguments", self_ending=True),),
        ("granite", "Granite"),
        models=r"granite-?3\.0",
    ),
    TextFormat(
        "granite31",
        (CallSyntax("<tool_call>", ("</tool_call>",), "arguments", self_ending=True),),
        ("granite",),
        models=r"granite-?3",
    ),
    TextFormat("granite4", (HERMES,), ("granite4",), models=r"granite-?4"),
    TextFormat(
        "granite_20b_fc",
        (CallSyntax("<function_call>", arguments_key="arguments", self_ending=True),),
        ("granite-20b-fc",),
        models=r"granite-20b",
    ),
    TextFormat("jamba", (_CALLS_LIST,), ("jamba",), models=r"jamba"),
    TextFormat("hunyuan_a13b", (_CALLS_LIST,), ("hunyuan_a13b", "hunyuan"), models=r"hunyuan"),
    TextFormat("minimax_m1", (_CALLS_LIST,), ("minimax",), models=r"minimax-?m1"),
    TextFormat(
        "internlm2",
        (
            CallSyntax(
                "<|action_start|><|plugin|>", ("<|action_end|>",), arguments_key="parameters"
            ),
            CallSyntax(
                "<|action_start|> <|plugin|>", ("<|action_end|>",), arguments_key="parameters"
            ),
        ),
        ("internlm", "interns1"),
        models=r"intern-?(?:lm|s1)",
        marks="<|action_start|>",
    ),
    TextFormat(
        "longcat",
        (CallSyntax("<longcat_tool_call>", ("</longcat_tool_call>",), arguments_key="arguments"),),
        ("longcat",),
        models=r"longcat",
        marks="<longcat_tool_call>",
    ),
    TextFormat(
        "nemotron",
        (CallSyntax("<TOOLCALL>", ("</TOOLCALL>",), arguments_key="arguments"),),
        ("Nemotron V2",),
        models=r"nemotron",
        marks="<TOOLCALL>",
    ),
    TextFormat(
        "phi4_mini", (_FUNCTOOLS,), ("phi4_mini_json",), models=r"phi-?4-mini", marks="functools["
    ),
    TextFormat(
        "phi4",
        (CallSyntax("<|tool_call|>", ("<|/tool_call|>",), arguments_key="arguments"),),
        models=r"phi-?4",
        marks="<|/tool_call|>",
    ),
    TextFormat(
        "gigachat3",
        (
            CallSyntax("function call<|role_sep|>", arguments_key="arguments", self_ending=True),
            CallSyntax("<|function_call|>", arguments_key="arguments", self_ending=True),
        ),
        ("gigachat3",),
        models=r"gigachat-?3",
        marks="function call<|role_sep|>",
    ),
    TextFormat(
        "qwen_agent",
        (
            CallSyntax(
                "✿FUNCTION✿:",
                ("✿RESULT✿:",),
                json_calls=False,
                name_end="✿ARGS✿:",
                self_ending=True,
            ),
        ),
    ),
    TextFormat(
        "react_json",
        (
            CallSyntax(
                "Action:",
                ("Observation:",),
                json_calls=False,
                name_end="Action Input:",
                self_ending=True,
            ),
        ),
    ),
    TextFormat("react_text", (ActionSyntax(start="Action:", ends=("Observation:",)),)),
    TextFormat(
        "deepseek_v31",
        (
            CallSyntax(
                "<\uff5ctool▁call▁begin\uff5c>",
                ("<\uff5ctool▁call▁end\uff5c>",),
                json_calls=False,
                name_end="<\uff5ctool▁sep\uff5c>",
                around=_DEEPSEEK_AROUND,
            ),
        ),
        ("deepseek_v31", "deepseekv31", "DeepSeek V3.1"),
        models=r"deepseek.*v?3\.1",
    ),
    TextFormat(
        "deepseek_v3",
        (
            CallSyntax(
                "<\uff5ctool▁call▁begin\uff5c>function<\uff5ctool▁sep\uff5c>",
                ("<\uff5ctool▁call▁end\uff5c>",),
                json_calls=False,
                name_end="\n",
                fenced=True,
                around=_DEEPSEEK_AROUND,
            ),
        ),
        ("deepseek_v3", "deepseekv3", "DeepSeek R1"),
        models=r"deepseek",
        marks="<\uff5ctool▁call▁begin\uff5c>",
    ),
    TextFormat(
        "kimi_k2",
        (
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
        ("kimi_k2", "Kimi K2"),
        models=r"kimi",
        marks="<|tool_calls_section_begin|>",
    ),
    TextFormat(
        "gpt_oss",
        (HarmonySyntax(), HarmonySyntax(start="<|start|>")),
        ("openai", "gpt-oss", "GPT-OSS"),
        models=r"gpt-?oss",
        marks="<|channel|>",
    ),
    TextFormat(
        "command_r7b",
        (
            KeyedSyntax(
                start="<|START_ACTION|>",
                ends=("<|END_ACTION|>",),
                around=("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
                name_key="tool_name",
                arguments_keys=("parameters",),
                other_keys=("tool_call_id",),
                in_list=True,
            ),
        ),
        ("cohere_command3", "Command R7B"),
        (("<|START_THINKING|>", "<|END_THINKING|>"),),
        models=r"command-?(?:r7b|a)\b",
        marks="<|START_ACTION|>",
    ),
    TextFormat(
        "apertus",
        (
            KeyedSyntax(
                start="<|tools_prefix|>", ends=("<|tools_suffix|>",), name_key="", in_list=True
            ),
        ),
        ("apertus", "apertus2509", "Apertus"),
        (("<|inner_prefix|>", "<|inner_suffix|>"), *THINK),
        models=r"apertus",
        marks="<|tools_prefix|>",
    ),
    TextFormat("pythonic", (_BARE_PYTHON,), ("pythonic",)),
    TextFormat(
        "llama4_pythonic",
        (PythonSyntax(start="<|python_start|>", ends=("<|python_end|>",)), _BARE_PYTHON),
        ("llama4_pythonic",),
        models=r"llama-?4",
        marks="<|python_start|>",
    ),
    TextFormat(
        "lfm2",
        (PythonSyntax(start="<|tool_call_start|>", ends=("<|tool_call_end|>",)),),
        ("lfm2",),
        models=r"lfm-?2",
        marks="<|tool_call_start|>",
    ),
    TextFormat(
        "olmo3",
        (PythonSyntax(start="<function_calls>", ends=("</function_calls>",), in_list=False),),
        ("olmo3",),
        models=r"olmo-?3",
    ),
    TextFormat(
        "gemma_tool_code",
        (PythonSyntax(start="```tool_code", ends=("```",), in_list=False),),
        models=r"gemma-?3\b",
        marks="```tool_code",
    ),
    TextFormat(
        "functiongemma",
        (
            EscapedSyntax(
                start="<start_function_call>", ends=("<end_function_call>",), mark="<escape>"
            ),
        ),
        ("functiongemma",),
        models=r"function-?gemma",
        marks="<start_function_call>",
    ),
    TextFormat(
        "gemma4",
        (EscapedSyntax(start="<|tool_call>", ends=("<tool_call|>",), mark='<|"|>'),),
        ("gemma4",),
        models=r"gemma-?4",
        marks="<|tool_call>",
    ),
    TextFormat(
        "qwen3_coder",
        (_QWEN_XML, _QWEN_XML_INNER),
        ("qwen3_coder", "qwen3_xml", "step3p5", "mimo", "Qwen3 Coder"),
        models=r"qwen-?3-?coder|qwen-?3\.5|step-?3\.5|mimo",
        marks="<function=",
    ),
    TextFormat(
        "seed_oss",
        (
            XmlSyntax(
                start="<seed:tool_call>",
                ends=("</seed:tool_call>",),
                call=("<function=", ">"),
                call_end="</function>",
            ),
        ),
        ("seed_oss", "Seed-OSS"),
        (("<seed:think>", "</seed:think>"), *THINK),
        models=r"seed-?oss",
        marks="<seed:tool_call>",
    ),
    TextFormat(
        "glm45",
        (_ARG_KEYS,),
        ("glm45", "glm47", "glm", "GLM 4.5"),
        models=r"glm-?(?:4\.[5-9]|[5-9])",
        marks="<arg_key>",
    ),
    TextFormat(
        "hy_v3",
        (replace(_ARG_KEYS, name_end="<tool_sep>", around=("<tool_calls>", "</tool_calls>")),),
        ("hy_v3",),
        models=r"hy-?3|hunyuan-?v?3",
        marks="<tool_sep>",
    ),
    TextFormat(
        "solar_open2",
        (
            XmlSyntax(
                start="<|tool_call:start|>",
                ends=("<|tool_call:end|>",),
                key=("<|tool_arg:start|>", "<|tool_arg:value|>"),
                value_end="<|tool_arg:end|>",
                lines=False,
            ),
        ),
        ("solar_open2",),
        models=r"solar-?open-?2",
        marks="<|tool_call:start|>",
    ),
    TextFormat(
        "minimax_m2",
        (
            XmlSyntax(
                start="<minimax:tool_call>",
                ends=("</minimax:tool_call>",),
                call=('<invoke name="', '">'),
                call_end="</invoke>",
                key=('<parameter name="', '">'),
                lines=False,
            ),
        ),
        ("minimax_m2", "minimax-m2", "MiniMax-M2"),
        models=r"minimax-?m2",
        marks="<minimax:tool_call>",
    ),
    TextFormat("anthropic_xml", (_INVOKE,)),
    TextFormat(
        "deepseek_v32",
        (_DSML,),
        ("deepseek_v32", "deepseekv32"),
        models=r"deepseek.*v?3\.2",
        marks="<\uff5cDSML\uff5cfunction_calls>",
    ),
    TextFormat(
        "deepseek_v4",
        (_DSML_V4,),
        ("deepseek_v4",),
        models=r"deepseek.*v?4",
        marks="<\uff5cDSML\uff5ctool_calls>",
    ),
    TextFormat(
        "step3",
        (
            XmlSyntax(
                start="<\uff5ctool_call_begin\uff5c>function<\uff5ctool_sep\uff5c>",
                ends=("<\uff5ctool_call_end\uff5c>",),
                around=("<\uff5ctool_calls_begin\uff5c>", "<\uff5ctool_calls_end\uff5c>"),
                call=('<steptml:invoke name="', '">'),
                call_end="</steptml:invoke>",
                key=('<steptml:parameter name="', '">'),
                value_end="</steptml:parameter>",
                lines=False,
            ),
        ),
        ("step3",),
        models=r"step-?3",
        marks="<steptml:",
    ),
    TextFormat(
        "cline_xml",
        (XmlSyntax(start="<tool_name>", key=("<", ">"), value_end="</{key}>", of_each_tool=True),),
    ),
    TextFormat("xlam_bare", (_BARE_LIST,), ("xlam",), models=r"xlam"),
    TextFormat("xlam_fence", (KeyedSyntax(start="", in_list=True, in_fence=True),), ("xlam",)),
    TextFormat("firefunction", (_FUNCTOOLS,), ("FireFunction v2",), models=r"firefunction"),
    TextFormat("generic_json", (KeyedSyntax(start="", in_list=True),), ("Generic",)),
)
