"""The scene graph: its grammar, its text, and how updates are merged."""
