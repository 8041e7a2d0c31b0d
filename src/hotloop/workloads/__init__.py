"""Built-in jobs, written against the Python API as a user would write them.

They run in the job's own process and import torch at once; nothing in the core imports them. The
experiments name them by file and class.
"""
