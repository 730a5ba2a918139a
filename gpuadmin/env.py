"""Every setting of gpuadmin: one row each, read from environment variables.

A bad value never stops the import of the settings: the row falls back to its default and the
problem becomes a sentence, which `manage.py` shows as a system check and every serving process
(web, worker) prints before it refuses to start.
"""

import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

T = TypeVar("T")
PREFIX = "GPUADMIN_"
FILE_SUFFIX = "_FILE"


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One environment variable: how its text is parsed, its default, and what it is for.

    `parse` raises ValueError with half a sentence ("must be …"). A secret may also be given as
    NAME_FILE, the path of a file that holds it. `needed_to_serve` has no usable default.
    """

    name: str
    parse: Callable[[str], T]
    default: T
    help: str
    secret: bool = False
    needed_to_serve: bool = False

    def read(self, environ: Mapping[str, str] = os.environ) -> T:
        """The parsed value; the default where it is unset, empty or bad."""
        try:
            return self.parse_from(environ)
        except ValueError:
            return self.default

    def parse_from(self, environ: Mapping[str, str]) -> T:
        """The parsed value, or the default where it is unset or empty.

        Raises ValueError with one whole sentence.
        """
        text = environ.get(self.name, "")
        path = environ.get(self.name + FILE_SUFFIX, "") if self.secret else ""
        if text and path:
            raise ValueError(f"Both {self.name} and {self.name}_FILE are set: unset one of them.")
        if path:
            text = self._read_file(Path(path))
        if not text:
            return self.default
        try:
            return self.parse(text)
        except ValueError as error:
            shown = "" if self.secret else f", but it is {text!r}"
            raise ValueError(f"{self.name} {error}{shown}.") from None

    def _read_file(self, path: Path) -> str:
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise ValueError(
                f"{self.name}_FILE names {path}, which cannot be read: {reason}."
            ) from None


def text(value: str) -> str:
    return value


def flag(value: str) -> bool:
    answers = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if value.lower() not in answers:
        raise ValueError("must be true or false")
    return answers[value.lower()]


def names(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def number(low: int, high: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        if not (value.isascii() and value.isdigit() and low <= int(value) <= high):
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(value)

    return parse


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return value

    return parse


def at_least(length: int) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if len(value) < length:
            raise ValueError(f"must have at least {length} characters")
        return value

    return parse


def postgres_url(value: str) -> str:
    try:
        conninfo = conninfo_to_dict(value)
    except ProgrammingError:
        conninfo = {}
    if not value.startswith(("postgresql://", "postgres://")) or not conninfo.get("dbname"):
        raise ValueError("must be like postgresql://user:password@host/database")
    return value


def redis_url(value: str) -> str:
    if not value.startswith(("redis://", "rediss://", "unix:///")):
        raise ValueError("must be like redis://host:6379/0 or unix:///path/of/the.sock")
    return value


SECRET_KEY = Setting(
    "GPUADMIN_SECRET_KEY",
    at_least(32),
    "",
    "Signs sessions and forms. The same on every web and worker process, and kept.",
    secret=True,
    needed_to_serve=True,
)
DATABASE_URL = Setting(
    "GPUADMIN_DATABASE_URL",
    postgres_url,
    "postgresql:///gpuadmin",
    "PostgreSQL, as a libpq address; a unix socket is host=/folder in its query.",
    secret=True,
)
REDIS_URL = Setting(
    "GPUADMIN_REDIS_URL",
    redis_url,
    "redis://127.0.0.1:6379/0",
    "Redis or Valkey, which carries the task queue.",
    secret=True,
)
ALLOWED_HOSTS = Setting[tuple[str, ...]](
    "GPUADMIN_ALLOWED_HOSTS",
    names,
    ("127.0.0.1", "localhost"),
    "Host names under which the console answers, with commas between them.",
)
HTTPS = Setting(
    "GPUADMIN_HTTPS",
    flag,
    False,
    "True behind a proxy that ends TLS and sets X-Forwarded-Proto: secure cookies and HSTS.",
)
TRUSTED_ORIGINS = Setting[tuple[str, ...]](
    "GPUADMIN_TRUSTED_ORIGINS",
    names,
    (),
    "Origins whose forms are accepted beside our own, such as https://gpu.example.org.",
)
TRUSTED_PROXIES = Setting(
    "GPUADMIN_TRUSTED_PROXIES",
    number(0, 10),
    0,
    "How many proxies of yours stand before the console and append to X-Forwarded-For; with 0 "
    "behind a proxy, everybody has the proxy's address, and failed sign-ins lock out everybody.",
)
SESSION_HOURS = Setting(
    "GPUADMIN_SESSION_HOURS",
    number(1, 720),
    12,
    "Hours after which a sign-in ends, however much it is used.",
)
SESSION_IDLE_MINUTES = Setting(
    "GPUADMIN_SESSION_IDLE_MINUTES",
    number(5, 43200),
    120,
    "Minutes after which an unused sign-in ends; a page that refreshes itself is no use.",
)
LOG_LEVEL = Setting(
    "GPUADMIN_LOG_LEVEL",
    one_of("DEBUG", "INFO", "WARNING", "ERROR"),
    "INFO",
    "Least severe log line that is written.",
)
KUBECONFIG = Setting(
    "GPUADMIN_KUBECONFIG",
    text,
    "",
    "Kubeconfig of the cluster; empty means the service account of the pod that we run in.",
)
KUBE_CONTEXT = Setting(
    "GPUADMIN_KUBE_CONTEXT", text, "", "Context of the kubeconfig; empty means its current one."
)
LOOPBACK_CLUSTERS = Setting(
    "GPUADMIN_LOOPBACK_CLUSTERS",
    flag,
    False,
    "True lets a kubeconfig given in the browser name a server on this machine, to try things out.",
)
CLUSTER_NAME = Setting(
    "GPUADMIN_CLUSTER_NAME", text, "default", "Name of the cluster in our database and addresses."
)
NAMESPACE = Setting(
    "GPUADMIN_NAMESPACE", text, "gpuadmin", "Namespace of the cluster that holds our agents."
)
PLUGIN_NAMESPACE = Setting(
    "GPUADMIN_PLUGIN_NAMESPACE",
    text,
    "nvidia-device-plugin",
    "Namespace of NVIDIA's device plugin, where the components sharing and plugin act.",
)
AGENT_DAEMONSET = Setting(
    "GPUADMIN_AGENT_DAEMONSET",
    text,
    "gpuadmin-agent",
    "DaemonSet whose pods are our agents; no other pod is ever sent a token.",
)
LOOPBACK_AGENTS = Setting(
    "GPUADMIN_LOOPBACK_AGENTS",
    flag,
    False,
    "True lets agents have addresses of this machine, as simulated ones do.",
)
AGENT_SECRET = Setting(
    "GPUADMIN_AGENT_SECRET",
    at_least(16),
    "",
    "Shared with the agents; the token of each node is made from it.",
    secret=True,
    needed_to_serve=True,
)
AGENT_TIMEOUT_SECONDS = Setting(
    "GPUADMIN_AGENT_TIMEOUT_SECONDS", number(1, 60), 3, "Total time that one agent has to answer."
)
POLL_SECONDS = Setting(
    "GPUADMIN_POLL_SECONDS", number(5, 3600), 15, "Seconds between two readings of every agent."
)
RELEASE_LIMIT_SECONDS = Setting(
    "GPUADMIN_RELEASE_LIMIT_SECONDS",
    number(0, 86400),
    1800,
    "Seconds for which agents let go of NVML while labels signal a change of MIG or driver.",
)
OPERATION_LEASE_SECONDS = Setting(
    "GPUADMIN_OPERATION_LEASE_SECONDS",
    number(20, 600),
    60,
    "Seconds after which the work of a silent worker on a change goes to another one.",
)
RAW_HOURS = Setting(
    "GPUADMIN_RAW_HOURS", number(1, 8760), 48, "Hours for which single readings are kept."
)
BUSY_PERCENT = Setting(
    "GPUADMIN_BUSY_PERCENT",
    number(1, 100),
    10,
    "Utilisation from which a held card counts as busy, in percent.",
)
IDLE_PERCENT = Setting(
    "GPUADMIN_IDLE_PERCENT",
    number(0, 100),
    5,
    "Utilisation below which a held card counts as unused, in percent.",
)
IDLE_AFTER_SECONDS = Setting(
    "GPUADMIN_IDLE_AFTER_SECONDS",
    number(1, 7 * 86400),
    7200,
    "Seconds for which a held card must be unused to count as held but idle.",
)
MIG_STUCK_SECONDS = Setting(
    "GPUADMIN_MIG_STUCK_SECONDS",
    number(60, 86400),
    1200,
    "Seconds after which a change of a node's MIG layout that has not ended counts as stuck.",
)
TOLERATED_TAINTS = Setting[tuple[str, ...]](
    "GPUADMIN_TOLERATED_TAINTS",
    names,
    ("nvidia.com/gpu",),
    "Keys of taints that every GPU pod tolerates; any other taint makes a node's GPUs unfree.",
)

SETTINGS: dict[str, Setting[object]] = {
    row.name: row for row in list(globals().values()) if isinstance(row, Setting)
}
# Read by the tests and the Makefile, never by the console itself.
TOOL_NAMES = {
    "GPUADMIN_CONTROLPLANE_BIN": "Folder with the built control plane of the tests.",
    "GPUADMIN_DEMO_HOME": "Folder of the demo's data, var/demo when it is not set.",
}


def known_names() -> list[str]:
    """Every GPUADMIN_ variable that means something, NAME_FILE forms included."""
    files = [name + FILE_SUFFIX for name, row in SETTINGS.items() if row.secret]
    return [*SETTINGS, *files, *TOOL_NAMES]


def problems(environ: Mapping[str, str] = os.environ) -> list[str]:
    """One sentence for each bad value and each GPUADMIN_ name that nothing reads."""
    return [*_bad_values(environ), *_unknown_names(environ)]


def refuse_to_serve(environ: Mapping[str, str] = os.environ) -> None:
    """Ends the process with every problem, a missing needed value included."""
    missing = [
        f"{row.name} is not set: {row.help}"
        for row in SETTINGS.values()
        if row.needed_to_serve and not row.read(environ)
    ]
    found = [*missing, *problems(environ)]
    if found:
        raise SystemExit("gpuadmin cannot start:\n" + "\n".join(f"  {line}" for line in found))


def _bad_values(environ: Mapping[str, str]) -> Iterable[str]:
    for row in SETTINGS.values():
        try:
            row.parse_from(environ)
        except ValueError as error:
            yield str(error)


def _unknown_names(environ: Mapping[str, str]) -> Iterable[str]:
    known = known_names()
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f": did you mean {near[0]}?" if near else " (docs/settings.md lists them all)."
            yield f"{name} is not a setting of gpuadmin{hint}"
