"""Training scripts that are each limited by one known thing; `suite.py` says by which."""
