"""What limits a job, with evidence: pure functions of what its trials showed."""
