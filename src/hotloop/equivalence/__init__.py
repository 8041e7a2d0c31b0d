"""Whether a plan does the same training, judged from what examined trials left. Starts none."""
