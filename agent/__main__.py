"""``python -m agent``: settings from the environment (agent.config), then serve."""

from __future__ import annotations

import logging
import os
import sys

from agent.config import ConfigError, from_environment
from agent.server import run


def main() -> int:
    """The exit status: 2 for a bad setting, else ``run``'s."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        config = from_environment(os.environ)
    except ConfigError as error:
        sys.stderr.write(f"gpuadmin agent: {error}\n")
        return 2
    return run(config)


if __name__ == "__main__":
    sys.exit(main())
