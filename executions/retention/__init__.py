"""What is deleted in time: executions, their history, and old rows of other tables."""
