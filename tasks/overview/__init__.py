"""The overview: what the service does at this moment, what is wrong, and how it went lately.

`state` reads the present, `findings` says what is wrong with it, `samples` and `events` keep the last two days.
They serve the dashboard, /metrics, the doctor and the queue page.
"""
