"""What people do to a running service: actions on many executions, and pauses; and the runs that deliver."""
