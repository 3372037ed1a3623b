"""`manage.py doctor`: look for everything that has stopped a system like this before, and say what to type.

A check is a small function in one of the modules below. It looks at `Facts` and yields problems; it changes
nothing. A check of a server that is away is not made, so that one cause gives one problem; the last line of the
output names the server.

| module | owns |
| --- | --- |
| `check` | a check, a problem, and the servers that a check needs |
| `facts` | what the checks look at, each read once |
| `program`, `postgres`, `tables`, `redis_servers`, `clocks`, `schedule`, `workers`, `statuses` | the checks |
| `overview` | checks that the overview of tasks makes as well |
| `examination` | every check, made in order |
| `output` | results as data and as text |
"""
