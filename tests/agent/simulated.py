"""``python -m tests.agent.simulated HARDWARE``: an agent on simulated NVML, from AGENT_* settings.

Its last line on standard output says how often NVML was opened and closed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pynvml

from agent.config import from_environment
from simulator.nvml.agent import run_simulated

if __name__ == "__main__":
    code = run_simulated(from_environment(os.environ), Path(sys.argv[1]))
    library = pynvml.nvmlLib
    sys.stdout.write(f"{library.init_count} {library.shutdown_count}\n")
    sys.exit(code)
