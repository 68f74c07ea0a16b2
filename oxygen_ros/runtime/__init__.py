"""The threads: engine, tick, ingest and writer around the layers below."""
