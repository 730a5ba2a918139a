"""Device ids as the kubelet lists them, in every form that plugins give them (C30).

Forms: ``GPU-<uuid>``, ``MIG-<uuid>``, ``MIG-GPU-<uuid>/<gi>/<ci>`` (old drivers), each with an
optional ``::<slot>`` of time-slicing or MPS (contracts.md 1.6); GKE's ``nvidia<index>``,
``nvidia<index>/gi<n>`` with an optional ``/vgpu<slot>``; and a CDI name, ``vendor/class=<id>``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from agent.contract.report import Device

_UUID = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_NUMBER = "[0-9]{1,9}"
_ID = re.compile(
    rf"(?:(?P<gpu>GPU-{_UUID})"
    rf"|(?P<mig>MIG-{_UUID})"
    rf"|MIG-(?P<parent>GPU-{_UUID})/(?P<gi>{_NUMBER})/(?P<ci>{_NUMBER}))"
    rf"(?:::(?P<slot>{_NUMBER}))?"
    rf"|nvidia(?P<index>{_NUMBER})(?:/gi(?P<index_gi>{_NUMBER}))?(?:/vgpu(?P<vgpu>{_NUMBER}))?"
)
_CDI = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*=(?P<id>.*)", re.DOTALL)


def parse_device_id(text: str, uuid_of_index: Mapping[int, str]) -> Device:
    """The card, the instance or none, and the slot or none, that ``text`` names.

    ``uuid_of_index`` is the agent's own table of that moment. A form that is unknown, or an index
    that is not in the table, gives ``recognised=False``; the text is always kept whole.
    """
    cdi = _CDI.fullmatch(text)
    match = _ID.fullmatch(cdi["id"] if cdi else text)
    if match is None:
        return Device(id=text, recognised=False)
    gpu_uuid = match["gpu"] or match["parent"]
    if match["index"]:
        gpu_uuid = uuid_of_index.get(int(match["index"]))
    return Device(
        id=text,
        gpu_uuid=gpu_uuid,
        mig_uuid=match["mig"],
        gpu_instance_id=_number(match["gi"] or match["index_gi"]),
        compute_instance_id=_number(match["ci"]),
        slot=_number(match["slot"] or match["vgpu"]),
        recognised=bool(gpu_uuid or match["mig"]),
    )


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
