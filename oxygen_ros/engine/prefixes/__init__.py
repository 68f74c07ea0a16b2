"""From an observation to its shared prefix, once."""
