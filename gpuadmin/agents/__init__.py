"""The one door to node agents."""
