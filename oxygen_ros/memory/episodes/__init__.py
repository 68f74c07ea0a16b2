"""The episodic store: SQLite, queries, retention."""
