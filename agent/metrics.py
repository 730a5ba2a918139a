"""The last reading in Prometheus' text format, for who has no gpuadmin at hand.

It opens nothing and reads nothing: how often the cards are read is the server's matter, and the
age says how old the numbers are. What was not measured has no sample; unknown is not 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from agent import __version__
from agent.contract.report import Gpu, Report

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Fields of a card by name, with what they are. Units stand in the names.
FIELDS: Mapping[str, str] = {
    "memory_total_bytes": "Memory of the card.",
    "memory_used_bytes": "Memory in use, without what the driver reserves.",
    "utilization_percent": "Share of the last sample period in which a kernel ran.",
    "memory_utilization_percent": "Share of the last sample period in which memory was accessed.",
    "temperature_celsius": "Temperature of the GPU.",
    "power_watts": "Power drawn.",
    "power_limit_watts": "Power limit in force.",
    "ecc_uncorrectable_volatile": "Uncorrectable memory errors since the driver was loaded.",
}
Sample = tuple[Mapping[str, str], float]


def exposition(report: Report | None, age_seconds: float) -> str:
    """The whole answer; ``report`` is the last one with a reading, None before the first."""
    version = [({"version": __version__}, 1.0)]
    lines = [*_metric("agent_info", "gauge", "Which agent this is.", version)]
    if report is not None:
        age: list[Sample] = [({}, round(age_seconds, 3))]
        xids: list[Sample] = [({}, float(report.xid_sequence))]
        lines += _metric("reading_age_seconds", "gauge", "Age of all that follows.", age)
        lines += _metric("xids_total", "counter", "XIDs since the agent started.", xids)
        lines += _cards(report.gpus)
    return "\n".join(lines) + "\n"


def _cards(gpus: Iterable[Gpu]) -> Iterator[str]:
    labelled = [
        ({"gpu": str(gpu.index), "uuid": gpu.uuid or "", "model": gpu.name or ""}, gpu)
        for gpu in gpus
    ]
    works: list[Sample] = [(labels, float(gpu.state == "ok")) for labels, gpu in labelled]
    yield from _metric("gpu_readable", "gauge", "1 where NVML can read the card, else 0.", works)
    for field, what in FIELDS.items():
        values = ((labels, getattr(gpu, field)) for labels, gpu in labelled)
        samples = [(labels, float(value)) for labels, value in values if value is not None]
        yield from _metric(f"gpu_{field}", "gauge", what, samples)


def _metric(name: str, kind: str, what: str, samples: Iterable[Sample]) -> Iterator[str]:
    """One metric with its two comment lines; nothing at all without a sample."""
    found = list(samples)
    if found:
        yield f"# HELP gpuadmin_{name} {what}"
        yield f"# TYPE gpuadmin_{name} {kind}"
    for labels, value in found:
        inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield (
            f"gpuadmin_{name}{{{inner}}} {value:.15g}"
            if inner
            else (f"gpuadmin_{name} {value:.15g}")
        )


def _escaped(text: str) -> str:
    """A label's value as the format wants it: no line ends where it could begin another sample."""
    text = text.encode("utf-8", "replace").decode()
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
