"""The format of log lines: JSON for programs, text for people. One event is one line, with its ids and without
secrets.

| module | owns |
| --- | --- |
| `formatters` | the two formats |
| `context` | the ids of what this process is doing: the Celery message, or the request |
| `secrets` | the secrets, which are masked in every line |
| `request_ids` | the id of a request: taken from its header or new, and sent with the answer |
| `for_gunicorn` | gunicorn's own lines in the same format |
"""
