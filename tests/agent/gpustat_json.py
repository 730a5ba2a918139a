"""``python -m tests.agent.gpustat_json HARDWARE``: what gpustat sees on the simulated NVML.

A process of its own: gpustat changes functions of pynvml when it is imported.
"""

from __future__ import annotations

import sys
from pathlib import Path

from simulator import nvml

if __name__ == "__main__":
    nvml.install(Path(sys.argv[1]))
    from gpustat.core import GPUStatCollection

    GPUStatCollection.new_query().print_json(sys.stdout)
