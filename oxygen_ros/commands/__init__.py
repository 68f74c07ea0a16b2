"""Subcommands about models and checkpoints."""
