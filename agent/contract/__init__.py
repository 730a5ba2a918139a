"""The wire between agent and server: versioned structs, and the catalogue as data.

This is the only part of ``agent`` that ``gpuadmin`` and ``simulator`` may import.
"""
