"""The world of the demo: twelve nodes of six models, their tenants, and trouble to find."""
