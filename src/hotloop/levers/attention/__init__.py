"""Attention written by hand, in a captured graph: how it is read, and what replaces it."""
