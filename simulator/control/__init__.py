"""The few controllers that the demo can't do without; all else is believed only on a real plane."""
