"""The domain: executions, their tasks, and what keeps the status of the one true to the others.

Imports run one way: screens (admin, commands) → use cases → the queue (Redis) and the rollup (SQL) →
status, settings, errors. Nothing here knows of Celery; the `tasks` package listens to our signals.
"""
