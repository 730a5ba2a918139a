"""What was: raw readings and hardware events."""
