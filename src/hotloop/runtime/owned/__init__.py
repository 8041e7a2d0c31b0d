"""The loop driver: trains a job that was described as a class, in a loop of our own.

The loop is ordinary torch code, as a careful user would write it. Levers and probes reach it the
way they reach a script, by interception, so that one lever serves both; what only an owned loop can
offer is a seam too, reached by intercepting the loop itself (`Loop.begin`).
"""
