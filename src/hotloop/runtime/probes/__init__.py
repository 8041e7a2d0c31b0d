"""What watches a job at its seams. A probe never waits for the device and never changes a value."""
