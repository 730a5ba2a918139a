"""A Kubernetes API over one store of JSON documents, bounded by simulator/README.md."""
