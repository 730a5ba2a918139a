"""A cluster to try things on: a Kubernetes API, nodes, and NVML beneath the real pynvml.

Nothing but the tests and the demo imports this package. simulator/README.md bounds it.
"""
