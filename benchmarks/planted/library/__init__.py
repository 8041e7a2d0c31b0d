"""What stands for other people's packages in the planted jobs."""
