"""Cases go through public doors: the watch process and agents in, REST and pages out."""

from tests.agent.conftest import open_door
from tests.cases.line import line
from tests.operations.conftest import api_client, api_folder, nudges, world
from tests.support.watching import api, console, watch

__all__ = [
    "api",
    "api_client",
    "api_folder",
    "console",
    "line",
    "nudges",
    "open_door",
    "watch",
    "world",
]
