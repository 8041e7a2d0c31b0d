"""Keeping the items of a dataset: whether it may be done, how they are drawn, where they lie."""
