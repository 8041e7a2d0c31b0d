"""Reading a dataset's files from a RAM disk: which they are, their copies, and the way there."""
