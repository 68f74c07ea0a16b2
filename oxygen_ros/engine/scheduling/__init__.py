"""What runs next: work, costs, policies, and the record of it."""
