"""Who hears what changed: other apps, functions of a project, webhooks, the log, the log of actions, the counters."""
