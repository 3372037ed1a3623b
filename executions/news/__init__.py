"""Who hears what changed: other apps, functions of a project, the log and the counters."""
