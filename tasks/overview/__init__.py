"""The overview: what the service does at this moment, and how it went lately.

`state` reads the present, `samples` and `events` keep the last two days. They serve the dashboard, /metrics, the
checks (tasks/checks), which say what is wrong, and the queue page.
"""
