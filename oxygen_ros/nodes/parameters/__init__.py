"""The parameters: one table, declared, read, and made into settings."""
