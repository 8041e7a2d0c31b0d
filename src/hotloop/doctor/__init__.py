"""What `hotloop doctor` looks at: the state of a machine that spoils measurements."""
