"""All that lives in the job's own process: the standard library, and torch once the job has it."""
