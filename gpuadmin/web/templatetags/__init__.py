"""Glyphs, icons, ages."""
