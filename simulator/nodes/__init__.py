"""Simulated GPU nodes: clients of a Kubernetes API, ours or a real one."""
