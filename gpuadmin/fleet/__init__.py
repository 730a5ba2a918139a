"""What there is now: clusters, nodes, cards, MIG instances, resources, findings."""
