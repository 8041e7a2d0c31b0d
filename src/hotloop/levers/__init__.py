"""One file an optimisation; registry.py is the list of them."""
