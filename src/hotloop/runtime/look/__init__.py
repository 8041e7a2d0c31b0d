"""Looking closely at a few steps of a job, in a trial of its own that nobody times."""
