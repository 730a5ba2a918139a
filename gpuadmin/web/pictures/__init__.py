"""From records to drawings: pure functions, no queries."""
