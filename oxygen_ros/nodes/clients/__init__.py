"""Clients of the running node: of the demo, the benchmark and the command line."""
