"""The well-known comparisons, each one command: what to run, and what its table says.

Data first: an experiment names cases, a laboratory measures them in fresh processes, and rows, a
figure and JSON come out. Nothing in the core imports this package.
"""
