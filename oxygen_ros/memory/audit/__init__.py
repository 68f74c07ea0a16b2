"""The audit log: a chain of records, its proof and its repair."""
