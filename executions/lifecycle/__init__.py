"""What happens to executions and tasks, a use case a module: from creation to retention."""
