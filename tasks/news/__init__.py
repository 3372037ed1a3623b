"""What the queue and the jobs do at this moment, how it went lately, and who hears it.

`signals` are sent and logged. `state` reads the present, `samples` and `events` keep the last two days; they serve
the dashboard, /metrics, the checks (tasks/checks), which say what is wrong, and the queue page.
"""
