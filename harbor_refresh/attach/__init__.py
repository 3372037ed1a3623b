"""`manage.py attach`: look whether this service can be attached to a Harbor, and put right what is wrong there.

A check is like those of `manage.py doctor` (harbor_refresh/doctor/): a small function that looks and yields
problems. Checks run before the first migration as well, so they ask for no table of ours.

| module | owns |
| --- | --- |
| `facts` | what the checks look at, each read once |
| `schema` | Harbor's tables as they must be, our schema, the covering index |
| `rights` | what the database and Redis must let this program do |
| `marks` | the marks of Harbor that Redis holds |
| `wrong_statuses` | the executions whose status is not what their tasks say |
| `repairs` | putting these right |
| `dead_tasks` | the tasks whose job is gone, and ending them |
| `examination` | every check, in order |
| `output` | what is printed beside the problems |
"""
