"""Every change: preview, confirm, run, verify, undo."""
