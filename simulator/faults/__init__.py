"""Scripted situations: what goes wrong, said in YAML (simulator/README.md)."""
