"""Pods that ask for or hold an accelerator, and who holds which card."""
