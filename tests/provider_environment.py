"""What the SDKs of providers read of their surroundings, and how tests are kept from it.

A test must not depend on a developer's own keys, profiles and addresses, and must not spend them.
The tests' programs inherit what is done here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Surroundings:
    """What one maker's SDK reads.

    Attributes:
        packages: The packages that read it.
        variables: The names of its variables, or how they begin.
        settings: What keeps it from files in the home directory, and from the servers that give a
            machine in a cloud its credentials.
    """

    packages: tuple[str, ...]
    variables: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


# By the makers in the table of APIs. Anthropic's folder of profiles has a variable, too, but a
# folder that is named must hold one.
SURROUNDINGS = {
    "openai": Surroundings(("openai",), ("OPENAI_", "AZURE_OPENAI_")),
    "anthropic": Surroundings(("anthropic",), ("ANTHROPIC_", "CLOUD_ML_REGION")),
    "google": Surroundings(
        ("google.genai", "google.auth"),
        (
            *("GEMINI_", "GOOGLE_", "GCLOUD_PROJECT", "CLOUDSDK_", "GCE_METADATA_"),
            *("NO_GCE_CHECK", "APPENGINE_RUNTIME"),
        ),
        {"CLOUDSDK_CONFIG": os.devnull, "NO_GCE_CHECK": "true"},
    ),
    "bedrock": Surroundings(
        ("boto3", "botocore"),
        ("AWS_", "BOTO_", "BOTOCORE_", "_X_AMZN_TRACE_ID"),
        {
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "BOTO_CONFIG": os.devnull,
        },
    ),
    # Read by this library's own adapter: there is no SDK.
    "ollama": Surroundings(("lutumpy.adapters.ollama",), ("OLLAMA_",)),
}
_VARIABLES = tuple([name for known in SURROUNDINGS.values() for name in known.variables])


def is_of_provider(name: str) -> bool:
    """Whether a variable is one that an SDK reads."""
    return name.startswith(_VARIABLES)


def leave_out_providers(environment: MutableMapping[str, str]) -> None:
    """Take everything out of an environment that an SDK would find in it, and keep the SDKs from
    looking elsewhere.
    """
    for name in list(environment):
        if is_of_provider(name):
            del environment[name]
    for known in SURROUNDINGS.values():
        environment.update(known.settings)
