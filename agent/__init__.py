"""The node agent: reads one node's GPUs and who holds them, and answers over HTTP.

Imports nothing of ``gpuadmin``, Django or the kubernetes client.
"""

__version__ = "0.1.0"
