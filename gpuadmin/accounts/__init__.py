"""Users, roles, API tokens and the audit record."""
