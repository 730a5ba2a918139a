"""Tests of dev/: set-up, embedded services, the demo."""
