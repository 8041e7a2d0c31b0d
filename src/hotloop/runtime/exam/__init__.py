"""A trial that shows what the training does: its structure exactly, its arithmetic step by step."""
