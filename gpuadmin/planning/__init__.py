"""Pure rules: dataclasses in, verdict or plan out. No Django, no clock, no I/O."""
