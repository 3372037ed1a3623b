"""What is read of executions for lists, pages and screens, and the filter that chooses them."""
