"""`manage.py attach`: look whether this service can be attached to a Harbor, and put right what is wrong there.

Its checks are in the registry of checks (tasks/checks), with Shown.ATTACH.

| module | owns |
| --- | --- |
| `facts` | what the checks look at, each read once: with the marks of Harbor that Redis holds |
| `checks` | Harbor's tables as they must be, our schema, the covering index, the marks, the statuses |
| `rights` | what the database, Redis and the broker must let this program do |
| `wrong_statuses` | the executions whose status is not what their tasks say, and putting them right |
| `dead_tasks` | the tasks whose job is gone, and ending them |
| `output` | what is printed beside the problems |
"""
