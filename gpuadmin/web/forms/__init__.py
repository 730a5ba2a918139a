"""What people may send."""
