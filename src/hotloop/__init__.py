"""hotloop makes PyTorch jobs fast, and shows that they still do the same training."""

__version__ = "0.1.0"
