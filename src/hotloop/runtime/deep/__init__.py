"""A few steps of a job under a profiler, in a trial of its own that nobody times."""
