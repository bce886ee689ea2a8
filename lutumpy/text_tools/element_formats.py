"""The formats whose arguments are elements, by name."""

from __future__ import annotations

from dataclasses import replace

from lutumpy.text_tools.instruction import ToolListing
from lutumpy.text_tools.json_formats import RESPONSES, TOOLS
from lutumpy.text_tools.nested_syntax import NestedSyntax
from lutumpy.text_tools.result_form import ResultForm
from lutumpy.text_tools.text_format import TextFormat
from lutumpy.text_tools.thinking import THINK
from lutumpy.text_tools.xml_syntax import XmlSyntax

__all__ = ["ELEMENT_FORMATS"]

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
_MINIMAX_MARK = "]<]minimax[>["
_MINIMAX_TOOLS = ToolListing("<tools>\n", "\n</tools>", entry="schema", tags=("<tool>", "</tool>"))
_MINIMAX_RESULTS = ResultForm("<response>", "</response>")
_SCHEMAS = ToolListing("<functions>\n", "\n</functions>", "function", entry="schema")


def _dsml(word: str, calls: str, space: str = "") -> XmlSyntax:
    """Elements whose names begin with a word between fullwidth bars."""
    prefix = f"\uff5c{word}\uff5c{space}"
    return XmlSyntax(
        start=f"<{prefix}{calls}>",
        ends=(f"</{prefix}{calls}>",),
        call=(f'<{prefix}invoke name="', '">'),
        call_end=f"</{prefix}invoke>",
        key=(f'<{prefix}parameter name="', ">"),
        value_end=f"</{prefix}parameter>",
        lines=False,
        typed="string",
    )


def _arg_keys(begin: str = "tool_call", suffix: str = "") -> XmlSyntax:
    """A name, and a pair of elements for each argument."""
    return XmlSyntax(
        start=f"<{begin}{suffix}>",
        ends=(f"</{begin}{suffix}>",),
        key=(f"<arg_key{suffix}>", f"</arg_key{suffix}>"),
        value_start=f"<arg_value{suffix}>",
        value_end=f"</arg_value{suffix}>",
        lines=False,
    )


def _hunyuan(suffix: str) -> XmlSyntax:
    around = (f"<tool_calls{suffix}>", f"</tool_calls{suffix}>")
    return replace(_arg_keys(suffix=suffix), name_end=f"<tool_sep{suffix}>", around=around)


_ARG_KEYS = _arg_keys()

ELEMENT_FORMATS: tuple[TextFormat, ...] = (
    TextFormat(
        name="qwen3_coder",
        syntaxes=(_QWEN_XML, _QWEN_XML_INNER),
        source="templates of Qwen3-Coder, Qwen3.5 and Step-3.5; vLLM and SGLang qwen3_coder",
        aliases=("qwen3_coder", "qwen3_xml", "step3p5", "step5", "mimo", "nanbeige", "Qwen3 Coder"),
        listing=TOOLS,
        results=RESPONSES,
        models=r"qwen-?3-?coder|qwen-?3\.5|step-?(?:3\.5|5)|mimo|nemotron-?3|nanbeige",
        marks=("<function=",),
    ),
    TextFormat(
        name="seed_oss",
        syntaxes=(
            XmlSyntax(
                start="<seed:tool_call>",
                ends=("</seed:tool_call>",),
                call=("<function=", ">"),
                call_end="</function>",
            ),
        ),
        source="template of Seed-OSS; vLLM seed_oss",
        aliases=("seed_oss", "Seed-OSS"),
        thinking=(("<seed:think>", "</seed:think>"), *THINK),
        models=r"seed-?oss",
        marks=("<seed:tool_call>", "<function="),
    ),
    TextFormat(
        name="glm45",
        syntaxes=(_ARG_KEYS,),
        source="templates of GLM-4.6, GLM-4.7, Ling 3 and Spark 2.5; vLLM glm45 and glm47",
        aliases=("glm45", "glm47", "glm", "ling3", "spark25", "GLM 4.5"),
        listing=TOOLS,
        results=RESPONSES,
        models=r"glm-?(?:4\.[5-9]|[5-9])|ling-?3|spark-?2\.?5",
        marks=("<arg_key>",),
    ),
    TextFormat(
        name="poolside_v1",
        syntaxes=(_ARG_KEYS,),
        source="template of Laguna XS and S; vLLM and SGLang poolside_v1",
        aliases=("poolside_v1",),
        listing=ToolListing("<available_tools>\n", "\n</available_tools>", "function"),
        results=RESPONSES,
        models=r"laguna|poolside",
        marks=("<arg_key>", "<available_tools>"),
    ),
    TextFormat(
        name="iquest_q1",
        syntaxes=(_arg_keys("iquest_tool_call"),),
        source="SGLang iquest_q1",
        aliases=("iquest_q1",),
        models=r"iquest-?q1",
        marks=("<iquest_tool_call>",),
    ),
    TextFormat(
        name="hy_v3",
        syntaxes=(_hunyuan(""), _hunyuan(":opensource")),
        source="template of Hy3; vLLM hy_v3",
        aliases=("hy_v3",),
        thinking=(("<think:opensource>", "</think:opensource>"), *THINK),
        listing=TOOLS,
        results=ResultForm(
            "<tool_response>\n",
            "\n</tool_response>",
            "<tool_responses>\n",
            "\n</tool_responses>",
        ),
        models=r"hy-?3|hunyuan-?v?3",
        marks=("<tool_sep",),
    ),
    TextFormat(
        name="solar_open2",
        syntaxes=(
            XmlSyntax(
                start="<|tool_call:start|>",
                ends=("<|tool_call:end|>",),
                key=("<|tool_arg:start|>", "<|tool_arg:value|>"),
                value_end="<|tool_arg:end|>",
                lines=False,
            ),
        ),
        source="vLLM solar_open2",
        aliases=("solar_open2",),
        thinking=(("<|think:start|>", "<|think:end|>"), *THINK),
        models=r"solar-?open-?2",
        marks=("<|tool_call:start|>",),
    ),
    TextFormat(
        name="kimi_k3",
        syntaxes=(
            XmlSyntax(
                start="<|open|>tools<|sep|>",
                ends=("<|close|>tools<|sep|>",),
                around=(
                    "<|open|>response<|sep|>",
                    "<|close|>response<|sep|>",
                    "<|close|>message<|sep|>",
                    "<|end_of_msg|>",
                ),
                call=('<|open|>call tool="', "<|sep|>"),
                call_attributes='" index="1"',
                call_end="<|close|>call<|sep|>",
                key=('<|open|>argument key="', "<|sep|>"),
                value_end="<|close|>argument<|sep|>",
                lines=False,
                typed="type",
            ),
        ),
        source="template of Kimi K3; vLLM and SGLang kimi_k3",
        aliases=("kimi_k3",),
        thinking=(("<|open|>think<|sep|>", "<|close|>think<|sep|>"), *THINK),
        listing=ToolListing("# Tools\n```json\n", "\n```", in_list=True),
        models=r"kimi-?k3",
        marks=("<|open|>", "<|close|>", "argument"),
    ),
    TextFormat(
        name="minicpm5",
        syntaxes=(
            XmlSyntax(
                start='<function name="',
                ends=("</function>",),
                name_end='">',
                key=('<param name="', '">'),
                value_end="</param>",
                lines=False,
                cdata=True,
            ),
        ),
        source="template of MiniCPM5; vLLM and SGLang minicpm5",
        aliases=("minicpm5",),
        listing=TOOLS,
        results=RESPONSES,
        models=r"minicpm-?5",
        marks=("<function name=", "<param name="),
    ),
    TextFormat(
        name="minimax_m2",
        syntaxes=(replace(_INVOKE, start="<minimax:tool_call>", ends=("</minimax:tool_call>",)),),
        source="template of MiniMax-M2; vLLM minimax_m2",
        aliases=("minimax_m2", "minimax-m2", "MiniMax-M2"),
        listing=_MINIMAX_TOOLS,
        results=_MINIMAX_RESULTS,
        models=r"minimax-?m2",
        marks=("<minimax:tool_call>",),
    ),
    TextFormat(
        name="minimax_m3",
        syntaxes=(
            NestedSyntax(
                start=f"{_MINIMAX_MARK}<tool_call>",
                ends=(f"{_MINIMAX_MARK}</tool_call>",),
                mark=_MINIMAX_MARK,
            ),
        ),
        source="template of MiniMax-M3; vLLM and SGLang minimax_m3",
        aliases=("minimax_m3", "minimax-m3"),
        thinking=(("<mm:think>", "</mm:think>"), *THINK),
        listing=_MINIMAX_TOOLS,
        results=_MINIMAX_RESULTS,
        models=r"minimax-?m3",
        marks=(_MINIMAX_MARK,),
    ),
    TextFormat(
        name="dots",
        syntaxes=(replace(_INVOKE, start="<dots_function_call>", ends=("</dots_function_call>",)),),
        source="vLLM and SGLang dots",
        aliases=("dots",),
        models=r"\bdots\b",
        marks=("<dots_function_call>",),
    ),
    TextFormat(
        name="anthropic_xml",
        syntaxes=(_INVOKE,),
        source="the prompts for Claude before it called tools natively",
        listing=_SCHEMAS,
        results=ResultForm(
            "<result>\n<tool_name>{plain_name}</tool_name>\n<stdout>\n",
            "\n</stdout>\n</result>",
            "<function_results>\n",
            "\n</function_results>",
        ),
    ),
    TextFormat(
        name="deepseek_v32",
        syntaxes=(_dsml("DSML", "function_calls"),),
        source="template of DeepSeek-V3.2; vLLM deepseek_v32",
        aliases=("deepseek_v32", "deepseekv32"),
        listing=_SCHEMAS,
        results=ResultForm(
            "<result>", "</result>", "<function_results>\n", "\n</function_results>"
        ),
        models=r"deepseek.*v?3\.2",
        marks=("\uff5cDSML\uff5c", "function_calls"),
    ),
    TextFormat(
        name="deepseek_v4",
        syntaxes=(_dsml("DSML", "tool_calls"),),
        source="template of DeepSeek-V4; vLLM deepseek_v4",
        aliases=("deepseek_v4", "deepseekv4"),
        listing=ToolListing("### Available Tool Schemas\n", entry="schema"),
        results=ResultForm("<tool_result>", "</tool_result>"),
        models=r"deepseek.*v?4",
        marks=("\uff5cDSML\uff5c", "tool_calls"),
    ),
    TextFormat(
        name="deepseek_v41",
        syntaxes=(_dsml("DSML", "calls", " "),),
        source="SGLang deepseekv41",
        aliases=("deepseek_v41", "deepseekv41"),
        listing=ToolListing("### Available Tool Schemas\n", entry="schema"),
        results=ResultForm("<tool_result>", "</tool_result>"),
        models=r"deepseek.*v?4\.1",
        marks=("\uff5cDSML\uff5c", "\uff5c calls"),
    ),
    TextFormat(
        name="gigachat35",
        syntaxes=(_dsml("GCML", "tool_calls"),),
        source="SGLang gigachat35",
        aliases=("gigachat35",),
        models=r"gigachat-?3\.5",
        marks=("\uff5cGCML\uff5c",),
    ),
    TextFormat(
        name="step3",
        syntaxes=(
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
        source="vLLM and SGLang step3",
        aliases=("step3",),
        models=r"step-?3",
        marks=("<steptml:",),
    ),
    TextFormat(
        name="cline_xml",
        syntaxes=(
            XmlSyntax(start="<tool_name>", key=("<", ">"), value_end="</{key}>", of_each_tool=True),
        ),
        source="prompts of Cline and Roo Code",
    ),
)
