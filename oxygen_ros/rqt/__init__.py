"""The latency monitor: a plain Qt widget and a thin rqt plugin."""
