"""A change as a program makes it over REST: preview, confirm, wait for its end, undo."""

from __future__ import annotations

from uuid import uuid4

from tests.cluster.console import Console
from tests.controlplane.client import Document
from tests.controlplane.waiting import until

END_SECONDS = 40.0
ENDS = ("succeeded", "failed", "stuck", "cancelled")


def node_in(console: Console, name: str) -> Document:
    """Wait until the product knows the node of this name, and return it."""

    def known() -> Document | None:
        return next((n for n in console.all("nodes") if n["name"] == name), None)

    return until(known, END_SECONDS, f"{name} to appear in the product")


def preview(console: Console, kind: str, node: Document, **parameters: str) -> Document:
    """The preview of a change of one node."""
    body = {"kind": kind, "parameters": {"nodes": [node["uid"]], **parameters}}
    answer = console.call("POST", "/operations/preview", body)
    assert answer.status == 200, answer.text
    return answer.body


def confirm(console: Console, shown: Document, path: str = "/operations") -> Document:
    """Confirm a preview as shown, typing what it asks for, and return the ended operation."""
    return ended(console, made(console, shown, path)["id"])


def made(console: Console, shown: Document, path: str = "/operations") -> Document:
    """Confirm a preview as shown, and return the operation as it is queued."""
    body = {"fingerprint": shown["fingerprint"], "reason": "maintenance"}
    body["confirm"] = shown["plan"]["confirm"]["phrase"]
    if path == "/operations":
        body |= {"kind": shown["kind"], "parameters": shown["parameters"]}
    answer = console.call("POST", path, body, headers={"Idempotency-Key": str(uuid4())})
    assert answer.status == 201, answer.text
    return answer.body


def ended(console: Console, operation_id: str) -> Document:
    """Wait until the operation is over, and return it."""

    def over() -> Document | None:
        found = console.get(f"/operations/{operation_id}")
        return found if found["state"] in ENDS else None

    return until(over, END_SECONDS, f"operation {operation_id} to end")


def undo(console: Console, operation: Document) -> Document:
    """Preview and confirm the undo, and return the ended operation."""
    path = f"/operations/{operation['id']}/undo"
    shown = console.call("POST", f"{path}/preview")
    assert shown.status == 200, shown.text
    return confirm(console, shown.body, path)
