"""Actions on many executions: how one is asked for, held by one process, and divided into pages."""
