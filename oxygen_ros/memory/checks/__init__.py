"""Facts, and what is said held against them."""
