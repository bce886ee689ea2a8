"""Functions that a program hands to the test server, scripted models and manifests, annotated with
whatever they take: each of these calls is right.
"""

from collections.abc import Mapping, MutableMapping
from typing import Any

from lutumpy.testing import Failure, Reply, ScriptedModel, serve
from lutumpy.toolclad import load_manifests


def takes_dict(api: str, body: dict[str, Any]) -> Reply:
    return Reply(text=f"{api} {body['model']}")


def takes_plain_dict(api: str, body: dict) -> Reply:  # type: ignore[type-arg]
    return Reply(text=str(body.get("model")))


def takes_dict_of_objects(api: str, body: dict[str, object]) -> Reply:
    return Reply(text=str(body["model"]))


def takes_mapping(api: str, body: Mapping[str, Any]) -> Reply | Failure:
    return Reply(text=str(body["model"])) if "model" in body else Failure(400, "no model")


def takes_mutable_mapping(api: str, body: MutableMapping[str, object]) -> dict[str, Any]:
    return {"choices": []}


def takes_object(api: object, body: object) -> str:
    return "{}"


def gives_events(api: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"choices": []}]


def gives_events_and_a_failure(api: str, body: dict[str, Any]) -> list[dict[str, Any] | Failure]:
    return [{"choices": []}, Failure(500, "broken off")]


class Clerk:
    def __call__(self, api: str, body: dict[str, Any]) -> Reply:
        return Reply(text=str(len(self.seen)))

    def answer(self, api: str, body: dict[str, Any]) -> Reply:
        return Reply(text="yes")

    seen: list[str] = []


SERVERS = [
    serve([takes_dict, takes_plain_dict, takes_dict_of_objects, takes_mapping]),
    serve([takes_mutable_mapping, takes_object, gives_events, gives_events_and_a_failure]),
    serve([Clerk(), Clerk().answer, lambda api, body: Reply(text=body["model"])]),
]
MODELS = [
    ScriptedModel([takes_dict, takes_plain_dict, takes_dict_of_objects, takes_mapping]),
    ScriptedModel([takes_mutable_mapping, takes_object, gives_events, gives_events_and_a_failure]),
    ScriptedModel([Clerk(), Clerk().answer, lambda api, body: Reply(text=body["model"])]),
]


def keeps_dict(tool: str, envelope: dict[str, Any]) -> None:
    print(tool, envelope["scan_id"])


async def keeps_mapping(tool: str, envelope: Mapping[str, Any]) -> None:
    print(tool, envelope["scan_id"])


MANIFESTS = [
    load_manifests("manifests", evidence=keeps_dict),
    load_manifests("manifests", evidence=keeps_mapping),
]
