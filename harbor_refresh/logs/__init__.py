"""The format of log lines: JSON for programs, text for people. One event is one line, with its ids and without
secrets.

| module | owns |
| --- | --- |
| `formatters` | the two formats |
| `context` | the ids of what this process does: the message, or the request, whose answer has it |
| `for_gunicorn` | gunicorn's own lines in the same format |
"""
