"""What to try next, and whether it is faster. Decides by measured trials alone; starts none."""
