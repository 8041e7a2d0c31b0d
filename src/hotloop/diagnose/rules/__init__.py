"""One rule a file; each looks for one thing that can limit a job."""
