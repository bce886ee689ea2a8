"""What a schema, together with all that describe the same value, says about an object."""

# What is hard here
# -----------------
# A question about an object is a question to every part of its schema: to what it refers to, to its
# `allOf`, and to what these refer to in turn. Documents share such parts between hundreds of
# schemas, and a hostile one lets each of its schemas hold all the others, so asking each time anew
# takes a time that doubles with each schema. Here each part is asked once for one question, the
# answer for a reference is kept, and a question to too many parts isn't answered: so a document
# takes a time that grows with its length alone.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from lutumpy.openapi.document import Document, UnusableError

__all__ = ["SchemaParts", "list_items"]

_MOST_STEPS = 10_000
"""Parts and their properties that one question may lead to. Real documents need some hundreds."""


class SchemaParts:
    """Answers questions about the schemas of a document.

    Args:
        document: The document.
        hiding_word: What a property has that doesn't go in the direction that is asked about:
            `readOnly` or `writeOnly`.

    Attributes:
        steps: Parts and properties that were looked at so far.
    """

    __slots__ = ("_document", "_fields", "_hidden", "_hiding_word", "_open", "_shown", "steps")

    def __init__(self, document: Document, hiding_word: str) -> None:
        self._document = document
        self._hiding_word = hiding_word
        # Answers by reference, or by the identity of a schema, which is held here.
        self._hidden: dict[str | int, tuple[Any, frozenset[str] | UnusableError]] = {}
        # References to what hasn't the word.
        self._shown: set[str] = set()
        self._open: dict[tuple[str, str], bool] = {}
        self._fields: dict[str, bool] = {}
        self.steps: int = 0

    def hidden_names(self, schema: Mapping[str, Any]) -> frozenset[str]:
        """The properties that don't go in this direction.

        Raises:
            UnusableError: A reference leads nowhere, or there are too many parts.
        """
        reference = _only_reference(schema)
        key: str | int = id(schema) if reference is None else reference
        if key not in self._hidden:
            self._hidden[key] = schema, self._find_hidden(schema)
        _, answer = self._hidden[key]
        if isinstance(answer, UnusableError):
            raise answer
        return answer

    def hidden_in_branches(self, schema: Mapping[str, Any]) -> frozenset[str]:
        """The properties that don't go in this direction in any of the branches of a union.

        Raises:
            UnusableError: As `hidden_names`.
        """
        found: frozenset[str] = frozenset()
        for word in ("oneOf", "anyOf"):
            branches = list_items(schema.get(word))
            if branches and all(isinstance(branch, Mapping) for branch in branches):
                found |= frozenset.intersection(*map(self.hidden_names, branches))
        return found

    def _find_hidden(self, schema: Mapping[str, Any]) -> frozenset[str] | UnusableError:
        found: set[str] = set()
        most = self.steps + _MOST_STEPS
        try:
            for part in self._parts(schema, most):
                properties = part.get("properties")
                if isinstance(properties, Mapping):
                    names = [name for name in properties if self._is_hidden(properties[name], most)]
                    found.update(map(str, names))
        except UnusableError as error:
            return error
        return frozenset(found)

    def _is_hidden(self, schema: Any, most: int) -> bool:
        """Whether a part of it has the word."""
        seen: set[str] = set()
        for part in self._parts(schema, most, seen, self._shown):
            if part.get(self._hiding_word) is True:
                return True
        # Nor does any of those have it that were followed.
        self._shown |= seen
        return False

    def leaves_open(self, reference: str, name: str) -> bool:
        """Whether a schema has a property and doesn't say which values it takes."""
        key = (reference, name)
        if key not in self._open:
            self._open[key] = self._find_open(reference, name)
        return self._open[key]

    def _find_open(self, reference: str, name: str) -> bool:
        found = False
        most = self.steps + _MOST_STEPS
        for part in self._parts({"$ref": reference}, most):
            properties = part.get("properties")
            inner = properties.get(name) if isinstance(properties, Mapping) else None
            for one in self._parts(inner, most):
                found = True
                if "const" in one or "enum" in one:
                    return False
        return found

    def has_fields(self, schema: Any) -> bool:
        """Whether an object's properties are named, in each of its forms."""
        return self._has_fields(schema, {}, self.steps + _MOST_STEPS)

    def _has_fields(self, schema: Any, known: dict[str, bool], most: int) -> bool:
        """The same.

        Args:
            schema: The Schema Object.
            known: The answer for references that were followed; for those that are being followed,
                that it isn't so.
            most: After how many steps the search stops.
        """
        if not isinstance(schema, Mapping):
            return False
        self._step(most)
        if schema.get("properties"):
            return True
        reference = schema.get("$ref")
        if isinstance(reference, str):
            if reference in self._fields:
                known[reference] = self._fields[reference]
            elif reference not in known:
                is_first = not known
                known[reference] = False
                target = self._document.find(reference)
                known[reference] = self._has_fields(target, known, most)
                # That it isn't so is certain only where nothing above is still being followed.
                if is_first or known[reference]:
                    self._fields[reference] = known[reference]
            if known[reference]:
                return True
        parts = list_items(schema.get("allOf"))
        if any(self._has_fields(inner, known, most) for inner in parts):
            return True
        branches = list_items(schema.get("oneOf", schema.get("anyOf")))
        return bool(branches) and all(self._has_fields(inner, known, most) for inner in branches)

    def _parts(
        self, schema: Any, most: int, seen: set[str] | None = None, left_out: Set[str] = frozenset()
    ) -> Iterator[Mapping[str, Any]]:
        """A schema and all that describe the same value: what it refers to, its `allOf`.

        Args:
            schema: The Schema Object.
            most: After how many steps the search stops.
            seen: Gets the references that were followed.
            left_out: References that aren't.
        """
        seen = set() if seen is None else seen
        waiting = [schema]
        while waiting:
            part = waiting.pop()
            if not isinstance(part, Mapping):
                continue
            self._step(most)
            yield part
            reference = part.get("$ref")
            if isinstance(reference, str) and reference not in seen and reference not in left_out:
                seen.add(reference)
                waiting.append(self._document.find(reference))
            waiting += reversed(list_items(part.get("allOf")))

    def _step(self, most: int) -> None:
        self.steps += 1
        if self.steps > most:
            raise UnusableError(f"a schema of it is composed of more than {_MOST_STEPS} parts")


def _only_reference(schema: Any) -> str | None:
    """The reference of a schema that has no properties of its own."""
    if not isinstance(schema, Mapping) or "properties" in schema or "allOf" in schema:
        return None
    reference = schema.get("$ref")
    return reference if isinstance(reference, str) else None


def list_items(value: Any) -> Sequence[Any]:
    """The entries of a list; none where it isn't one."""
    return value if isinstance(value, (list, tuple)) else ()
