"""The benchmark: rows and loads of one run, side by side."""
