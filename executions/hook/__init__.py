"""Harbor's status hook: the job service reports here what it reports to Harbor's core, in the same words."""
