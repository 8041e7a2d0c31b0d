"""What people read. Data first: plain rows that tests assert on; rendering second."""
