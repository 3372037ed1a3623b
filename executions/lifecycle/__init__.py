"""What happens to executions and tasks, a use case a module: creation, reports, refresh, stops, deletion."""
