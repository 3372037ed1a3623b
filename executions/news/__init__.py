"""Who hears what changed: other apps, functions of a project, webhooks, the log, the counters; and who did it."""
