"""Which host a part of the test server stands for, and who has sealed what."""

from __future__ import annotations

from dataclasses import dataclass, field

from lutumpy.doctor import host_name, is_compatible
from lutumpy.rules.host_facts import HostFacts, facts_of

__all__ = ["HostPlace", "places_of"]


@dataclass(frozen=True, slots=True)
class HostPlace:
    """A host that the test server stands for.

    Attributes:
        name: The name that it was asked for by; empty for the vendor of each API.
        facts: What is known of it; `None` for the vendor of each API.
        sealed: Host and model that sealed a piece of reasoning, by its seal. All places of one
            test server share it.
    """

    name: str = ""
    facts: HostFacts | None = None
    sealed: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    def is_compatible(self, api: str) -> bool:
        """Whether it isn't the vendor of an API."""
        return self.facts is not None and is_compatible(api, self.name)

    def note(self, seal: str, model: str) -> None:
        """Note that it has sealed something."""
        self.sealed[seal] = self.name, model

    def can_open(self, seal: str, model: str, *, by_model: bool = False) -> bool:
        """Whether it can open what was sealed: its own, and of many makers' models the model's own.
        Of what nobody here has sealed nothing is claimed.

        Args:
            seal: What it is known by.
            model: The model that is asked.
            by_model: Whether the API seals for the model.
        """
        host, sealer = self.sealed.get(seal, (self.name, model))
        has_many = by_model or (self.facts is not None and self.facts.many_makers)
        return host == self.name and (sealer == model or not has_many)


def places_of(hosts: list[str]) -> list[HostPlace]:
    """The places of a test server: the vendor's, and one for each host.

    Raises:
        ValueError: A host is neither a known name nor an address.
    """
    vendor = HostPlace()
    others = [HostPlace(name, facts_of(host_name(name)), vendor.sealed) for name in hosts]
    return [vendor, *others]
