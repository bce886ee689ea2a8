"""The command of a manifest: from cleaned values to the arguments of a program, without a shell."""

# What is hard: the author of the manifest decides which program runs and which arguments it gets;
# the model decides only what is in their places. So
#
# - the program is a text without places, and is looked up once, when the manifest is loaded;
# - each element of `exec` becomes one argument, whatever is put into it: no value is ever split.
#   In place of a word of a template, a mapping or conditional is the words that its author wrote;
# - places are filled in one pass, so what a value holds is never taken for a place;
# - an element with a place that is empty is left out. That depends on which arguments were written,
#   never on what they hold;
# - a text of the model's at the beginning of an argument can't begin with `-`, which would make it
#   an option, unless an element `--` comes before it;
# - where the program is a shell, texts of the model's hold nothing that a shell would interpret.
#
#   place                 from
#   --------------------  -----------------------------------------------------------------------
#   {name}                the argument, or its default; [command.defaults]
#   {_name_flags}         [command.mappings.name], looked up with the value of `name`
#   {_scan_flags}         the last of the mappings
#   {_name}               [command.conditionals.name], if its condition holds
#
# Evidence files, scan ids and secrets have no places: no file is written, and a secret in an
# argument could be seen by everyone who lists processes.

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import PurePath
from typing import NamedTuple

from lutumpy.plain.values import dataclass
from lutumpy.toolclad.tables import CommandTable

__all__ = ["Command", "Spelled", "compile_command", "find_shell"]

_PLACE = re.compile(r"\{(\w+)\}")
_SECRET = re.compile(r"\{_secret:")
_SHELLS = frozenset("ash bash csh dash fish ksh mksh pwsh sh tcsh zsh".split())
_RUNNERS = frozenset(
    "busybox chroot doas env nice nohup setsid stdbuf sudo time timeout unshare xargs".split()
)
_NO_SHELL_READS = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_COMPARISON = re.compile(r"\s*(\w+)\s*(==|!=)\s*('[^']*'|\"[^\"]*\"|[^\s'\"]*)\s*")


class Spelled(NamedTuple):
    """A value as it is put into a command.

    Attributes:
        text: The text.
        is_free: Whether the model chose it, and the manifest doesn't list it.
    """

    text: str
    is_free: bool


class Comparison(NamedTuple):
    """`name == text`, or `name != text`."""

    name: str
    is_equal: bool
    text: str

    def holds(self, values: Mapping[str, Spelled]) -> bool:
        found = values.get(self.name)
        return ((found.text if found else "") == self.text) is self.is_equal


@dataclass(frozen=True, slots=True)
class Fragment:
    """What is in place of `{_name}` if its condition holds."""

    name: str
    comparisons: tuple[Comparison, ...]
    needs_all: bool
    template: str

    def applies(self, values: Mapping[str, Spelled]) -> bool:
        holding = [comparison.holds(values) for comparison in self.comparisons]
        return all(holding) if self.needs_all else any(holding)


@dataclass(frozen=True, slots=True)
class Command:
    """A command that was checked.

    Attributes:
        program: As the manifest names it.
        elements: What follows it, with places.
        defaults: Values of places that are not arguments.
        mappings: Texts by argument and value.
        fragments: What is in a command under a condition.
        is_shell: Whether a shell reads the arguments.
        is_template: Whether the elements are the words of a template.
    """

    program: str
    elements: tuple[str, ...]
    defaults: Mapping[str, str]
    mappings: Mapping[str, Mapping[str, str]]
    fragments: tuple[Fragment, ...]
    is_shell: bool
    is_template: bool = False

    def build(self, values: Mapping[str, Spelled]) -> tuple[str, ...]:
        """The program, as the manifest names it, and its arguments.

        Args:
            values: What was written, and defaults, by argument. Empty ones count as left out.

        Raises:
            ValueError: A value can't be in its place; the text says which, for the model.
        """
        places = {name: Spelled(text, False) for name, text in self.defaults.items()}
        places.update(values)
        if self.is_shell:
            _check_for_shell(places)
        for name, table in self.mappings.items():
            chosen = places.get(name)
            mapped = Spelled(table.get(chosen.text, "") if chosen else "", False)
            places[f"_{name}_flags"] = places["_scan_flags"] = mapped
        # Fragments may have places of arguments and mappings, and not of one another.
        filled = {
            f"_{fragment.name}": self._fill_fragment(fragment, places)
            for fragment in self.fragments
        }
        places.update(filled)
        arguments: list[str] = []
        may_be_option = True
        for element in self.elements:
            words = self._find_words(element, places) if self.is_template else None
            if words is not None:
                arguments += words
                continue
            text = _fill(element, places, may_be_option)
            if text is not None:
                arguments.append(text)
            if element == "--":
                may_be_option = False
        return (self.program, *arguments)

    def _find_words(self, element: str, places: Mapping[str, Spelled]) -> list[str] | None:
        """What is in place of a mapping or conditional that is a word of a template; `None` for
        every other word.
        """
        place = _PLACE.fullmatch(element)
        if place is None or not place[1].startswith("_"):
            return None
        for fragment in self.fragments:
            if place[1] == f"_{fragment.name}":
                if not fragment.applies(places):
                    return []
                filled = [_fill(word, places, True) for word in shlex.split(fragment.template)]
                return [] if None in filled else [word for word in filled if word is not None]
        flags = [f"_{name}_flags" for name in self.mappings]
        if place[1] not in (*flags, "_scan_flags"):
            return None
        return shlex.split(places[place[1]].text)

    def _fill_fragment(self, fragment: Fragment, places: Mapping[str, Spelled]) -> Spelled:
        if not fragment.applies(places):
            return Spelled("", False)
        text = _fill(fragment.template, places, True)
        return Spelled(text or "", False)


def _fill(template: str, places: Mapping[str, Spelled], may_be_option: bool) -> str | None:
    """The template with its places filled in one pass; `None` where one of them is empty."""
    names = _PLACE.findall(template)
    if not all(name in places and places[name].text for name in names):
        return None
    first = _PLACE.match(template)
    if first is not None and may_be_option:
        leading = places[first[1]]
        if leading.is_free and leading.text.startswith("-"):
            raise ValueError(f"{first[1]}: it must not begin with '-', which makes it an option")
    return _PLACE.sub(lambda place: places[place[1]].text, template)


def _check_for_shell(places: Mapping[str, Spelled]) -> None:
    for name, value in places.items():
        free = value.is_free and value.text
        if free and (_NO_SHELL_READS.fullmatch(value.text) is None or value.text[0] == "-"):
            raise ValueError(
                f"{name}: a shell reads it, so it has letters, digits and any of @%+=:,./_- alone, "
                "and doesn't begin with '-'"
            )


# --- from the table of a manifest -----------------------------------------------------------------


def compile_command(table: CommandTable, arguments: Collection[str]) -> Command | list[str]:
    """The command that `[command]` declares, or everything that is wrong with it.

    Args:
        table: The table.
        arguments: The names of the arguments.
    """
    problems: list[str] = []
    program, *elements = table.exec
    if not program.strip() or _PLACE.search(program):
        problems.append("command.exec: the first element is the program, a text without places")
    fragments = []
    for name, conditional in table.conditionals.items():
        read = _read_condition(conditional.when)
        if read is None:
            problems.append(
                f"command.conditionals.{name}: when is comparisons as `port != 0`, joined by "
                "either `and` or `or`"
            )
        else:
            fragments.append(Fragment(name, *read, conditional.template))
    inner = {*arguments, *table.defaults}
    inner |= {f"_{name}_flags" for name in table.mappings}
    if table.mappings:
        inner.add("_scan_flags")
    outer = inner | {f"_{name}" for name in table.conditionals}
    problems += [
        f"command.mappings.{name}: there is no argument of this name"
        for name in table.mappings
        if name not in arguments
    ]
    for fragment in fragments:
        where = f"command.conditionals.{fragment.name}"
        problems += _check_template(where, fragment.template, inner)
        problems += [
            f"{where}: when compares {compared.name!r}, which is not an argument or default"
            for compared in fragment.comparisons
            if compared.name not in {*arguments, *table.defaults}
        ]
    for element in elements:
        problems += _check_template("command.exec", element, outer)
    literals = [program, *table.defaults.values(), *_list_mapped(table)]
    if any("\0" in str(text) for text in literals):
        problems.append("command: a text in it has a NUL character")
    if table.template:
        problems += _check_words(table)
    if problems:
        return problems
    return Command(
        program,
        tuple(elements),
        {name: _spell_default(value) for name, value in table.defaults.items()},
        {name: dict(mapping) for name, mapping in table.mappings.items()},
        tuple(fragments),
        find_shell(table.exec) is not None,
        table.template,
    )


def _check_words(table: CommandTable) -> Iterator[str]:
    """What can't be split into words, of the texts that are in place of words of a template."""
    named = [(f"conditionals.{name}", each.template) for name, each in table.conditionals.items()]
    for name, mapping in table.mappings.items():
        named += [(f"mappings.{name}", text) for text in mapping.values()]
    for where, text in named:
        try:
            shlex.split(text)
        except ValueError as error:
            yield f"command.{where}: {error}; write exec = [...]"


def find_shell(elements: list[str]) -> str | None:
    """The shell that reads the arguments of a command, or `None`."""
    for element in elements:
        name = PurePath(element).name
        if name in _SHELLS:
            return name
        # Such as `env -i LANG=C sh -c ...`: the program is the first that isn't an option of a
        # runner, which is not known here, so each of its arguments may be it.
        if elements[0] is element and name not in _RUNNERS:
            return None
    return None


def _list_mapped(table: CommandTable) -> Iterator[str]:
    for mapping in table.mappings.values():
        yield from mapping.values()


def _spell_default(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_template(where: str, template: str, known: set[str]) -> list[str]:
    if "\0" in template:
        return [f"{where}: a text in it has a NUL character"]
    if _SECRET.search(template):
        return [
            f"{where}: a secret in an argument would be seen by everyone who lists processes; let "
            "the program read it from a file, or from a variable given in environment="
        ]
    return [
        f"{where}: {{{name}}} is not an argument, a default, a mapping or a conditional"
        for name in _PLACE.findall(template)
        if name not in known
    ]


def _read_condition(when: str) -> tuple[tuple[Comparison, ...], bool] | None:
    """The comparisons of a condition, and whether all of them must hold."""
    needs_all = " and " in when
    if needs_all and " or " in when:
        return None
    comparisons: list[Comparison] = []
    for part in re.split(" and " if needs_all else " or ", when):
        match = _COMPARISON.fullmatch(part)
        if match is None:
            return None
        text = match[3]
        quoted = len(text) > 1 and text[0] in "'\""
        comparisons.append(Comparison(match[1], match[2] == "==", text[1:-1] if quoted else text))
    return tuple(comparisons), needs_all or len(comparisons) == 1
