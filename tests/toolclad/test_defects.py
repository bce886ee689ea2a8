"""Seven ways in which a manifest is run unsafely elsewhere, each refused here."""

from __future__ import annotations

import os

import pytest
from clad_toolkit import Workshop, call, run, told

from lutumpy import DeclarationError, InvalidArgumentsError, ToolError
from lutumpy.toolclad import load_manifests

OUTPUT = '[output]\nformat = "text"\n'
TOOL = '[tool]\nname = "fetch"\ndescription = "Fetch."\n'


def test_1_no_back_end_runs_without_validation(workshop: Workshop) -> None:
    table = '[args.q]\ntype = "port"\n[http]\nurl = "http://127.0.0.1/?q={q}"\n'
    path = workshop.write_text("a.clad.toml", TOOL + table + OUTPUT)
    with pytest.raises(InvalidArgumentsError, match="is not of type"):
        call(workshop.load(), "fetch", {"q": "80; id"})
    path.unlink()
    workshop.write_text("b.clad.toml", TOOL + '[mcp]\nserver = "s"\ntool = "t"\n' + OUTPUT)
    with pytest.raises(DeclarationError) as refused:
        workshop.load()
    assert "b.clad.toml: [mcp]: calls of MCP servers are not made" in str(refused.value)


def test_2_a_value_brings_no_secret_into_a_command(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCLAD_SECRET_OTHER", "hush")
    workshop.write("say", ["printf", "%s", "{text}"], {"text": {"type": "string"}})
    clad = workshop.load()
    with pytest.raises(InvalidArgumentsError, match="braces are not allowed"):
        call(clad, "say", {"text": "{_secret:other}"})
    with pytest.raises(InvalidArgumentsError, match="braces are not allowed"):
        call(clad, "say", {"text": "{text}"})


def test_3_no_secret_shows_in_a_command(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCLAD_SECRET_TOKEN", "hush")
    workshop.write("say", ["printf", "%s", "{_secret:token}"])
    with pytest.raises(DeclarationError, match="a secret in an argument would be seen by everyone"):
        workshop.load()


def test_3_the_model_is_not_told_the_command(workshop: Workshop) -> None:
    kept = []
    workshop.write("say", ["printf", "%s", "{text}"], {"text": {"type": "string"}})
    clad = workshop.load(evidence=lambda name, envelope: kept.append(envelope))
    assert told(run(clad, "say", {"text": "hello"})).keys() == {
        "status",
        "exit_code",
        "results",
        "duration_ms",
        "output_hash",
    }
    assert kept[0]["command"] == "printf %s hello"


def test_4_human_approval_has_an_effect(workshop: Workshop) -> None:
    program = workshop.program("act", "touch acted")
    workshop.write("act", [program], tool={"human_approval": True})
    result = run(workshop.load(), "act", {})
    assert (result.status, result.outcome) == ("error", "failed")
    assert "runs only what a person has approved" in str(result.content)
    assert not (workshop.place / "acted").exists()


def test_5_a_value_changes_no_address(workshop: Workshop) -> None:
    table = '[args.q]\ntype = "string"\n[http]\nurl = "http://127.0.0.1/{q}/?q={q}"\n'
    workshop.write_text("a.clad.toml", TOOL + table + OUTPUT)
    manifest = workshop.load().manifests["fetch"]
    sent = manifest.command({"q": "../a b?c=d#e%2F"})
    assert sent == (
        "GET",
        "http://127.0.0.1/..%2Fa%20b%3Fc%3Dd%23e%252F/?q=..%2Fa%20b%3Fc%3Dd%23e%252F",
    )


@pytest.mark.parametrize("kind", ["ip_address", "cidr", "scope_target"])
@pytest.mark.parametrize(
    "value", ["fe80::1%a --script=vuln", "fe80::1%eth0", "fe80::1%a/64", "10.0.0.1 -oN", " ::1"]
)
def test_6_an_address_with_a_zone_or_blanks_is_refused(
    workshop: Workshop, kind: str, value: str
) -> None:
    workshop.write("scan", ["printf", "%s", "{target}"], {"target": {"type": kind}})
    with pytest.raises(InvalidArgumentsError, match=r"zone|blanks"):
        call(workshop.load(), "scan", {"target": value})


@pytest.mark.parametrize("form", ['template = "wc -l {file} | sort"', 'executor = "./wrapper.sh"'])
def test_7_commands_that_need_a_shell_or_a_script_are_refused(
    workshop: Workshop, form: str
) -> None:
    arguments = '[args.file]\ntype = "path"\n'
    workshop.write_text("a.clad.toml", TOOL + arguments + f"[command]\n{form}\n" + OUTPUT)
    # As well where the safe form stands beside it.
    both = f'[command]\nexec = ["wc", "-l", "{{file}}"]\n{form}\n'
    workshop.write_text("b.clad.toml", TOOL + arguments + both + OUTPUT)
    with pytest.raises(DeclarationError) as refused:
        workshop.load()
    assert str(refused.value).count(f".clad.toml: command.{form.partition(' ')[0]}: ") == 2, refused
    assert str(refused.value).count(r"write exec = [...]") == 2


def test_7_a_template_is_split_when_it_is_loaded_and_never_with_values_in_it(
    workshop: Workshop,
) -> None:
    table = '[args.file]\ntype = "string"\n[command]\n'
    form = "template = \"printf %s -a{file} 'two words' {file}\"\n"
    workshop.write_text("a.clad.toml", TOOL + table + form + OUTPUT)
    clad = workshop.load()
    (manifest,) = clad.manifests.values()
    expected = ("printf", "%s", "-aa b -oN", "two words", "a b -oN")
    assert manifest.command({"file": "a b -oN"}) == expected
    assert manifest.command({}) == ("printf", "%s", "two words")
    with pytest.raises(ToolError, match="must not begin with '-'"):
        manifest.command({"file": "-oN"})


SCAN = """
[args.kind]
type = "enum"
allowed = ["ping", "service", "odd"]
[args.user]
type = "string"
[command]
template = "printf {_scan_flags} -x{_kind_flags} {_login} {user}"
[command.mappings.kind]
ping = "-sn -PE"
service = "-sT 'two words'"
odd = ""
[command.conditionals.login]
when = "user != ''"
template = "-l {user} --as '{user} {kind}'"
"""


def test_7_texts_of_the_author_are_the_words_that_stand_in_place_of_a_word(
    workshop: Workshop,
) -> None:
    workshop.write_text("a.clad.toml", TOOL + SCAN + OUTPUT)
    (manifest,) = workshop.load().manifests.values()
    assert manifest.command({"kind": "ping"}) == ("printf", "-sn", "-PE", "-x-sn -PE")
    # What the model wrote is never split, and makes no option.
    assert manifest.command({"kind": "service", "user": "a -b"}) == (
        *("printf", "-sT", "two words", "-x-sT 'two words'"),
        *("-l", "a -b", "--as", "a -b service", "a -b"),
    )
    assert manifest.command({"kind": "odd"}) == ("printf",)
    with pytest.raises(ToolError, match="must not begin with '-'"):
        manifest.command({"kind": "odd", "user": "-b"})
    broken = SCAN.replace("-sn -PE", "it's").replace("--as '", "--as ")
    workshop.write_text("a.clad.toml", TOOL + broken + OUTPUT)
    with pytest.raises(DeclarationError) as refused:
        workshop.load()
    assert "command.mappings.kind: No closing quotation" in str(refused.value)
    assert "command.conditionals.login: No closing quotation" in str(refused.value)
    workshop.write_text("a.clad.toml", TOOL + "[command]\ntemplate = true\n" + OUTPUT)
    with pytest.raises(DeclarationError, match=r"command\.template: it is a text"):
        workshop.load()


@pytest.mark.parametrize(
    "template",
    [
        "wc {file} > out",
        "wc `id`",
        "wc $(id)",
        "wc $HOME",
        "wc 'open",
        "wc {_secret:key}",
        "",
        "  ",
    ],
)
def test_7_a_template_that_has_no_safe_meaning_is_refused(
    workshop: Workshop, template: str
) -> None:
    table = f'[args.file]\ntype = "path"\n[command]\ntemplate = "{template}"\n'
    workshop.write_text("a.clad.toml", TOOL + table + OUTPUT)
    with pytest.raises(DeclarationError, match=r"a\.clad\.toml: command"):
        workshop.load()


def test_7_a_shell_as_the_program_is_warned_of(workshop: Workshop) -> None:
    workshop.write("count", ["/bin/sh", "-c", "wc -l {file}"], {"file": {"type": "path"}})
    with pytest.warns(UserWarning, match="runs the shell sh"):
        clad = load_manifests(workshop.tools, cwd=workshop.place)
    (warning,) = clad.manifests["count"].warnings
    assert "name the program itself" in warning


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("value", ["a b", "a'b", 'a"b', "a\\b", "~", "a*", "a#b", "-rf", "a^b"])
@pytest.mark.parametrize(
    "exec", [["sh", "-c", "wc -l {file}"], ["env", "-i", "/bin/bash", "-c", "wc -l {file}"]]
)
def test_7_no_text_reaches_a_shell_that_it_would_interpret(
    workshop: Workshop, exec: list[str], value: str
) -> None:
    workshop.write("count", exec, {"file": {"type": "string"}})
    clad = workshop.load()
    assert clad.manifests["count"].command({"file": "src/a-b.txt"})[-1] == "wc -l src/a-b.txt"
    with pytest.raises(InvalidArgumentsError, match="a shell reads it"):
        call(clad, "count", {"file": value})


def test_7_programs_inherit_no_secret(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCLAD_SECRET_TOKEN", "hush")
    monkeypatch.setenv("ANYTHING", "else")
    workshop.write("show", ["env"])
    raw = told(run(workshop.load(), "show", {}))["results"]["raw_output"]
    names = {line.partition("=")[0] for line in raw.splitlines()}
    assert names <= {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"}
    assert os.environ["TOOLCLAD_SECRET_TOKEN"] not in raw
    for wrong in (
        {"inherit": ["TOOLCLAD_SECRET_TOKEN"]},
        {"environment": {"toolclad_secret_x": ""}},
    ):
        with pytest.raises(ValueError, match="no program is given"):
            workshop.load(**wrong)
