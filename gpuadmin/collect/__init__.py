"""The watcher and the poll: read, a pure difference, one transaction."""
