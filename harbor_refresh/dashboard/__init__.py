"""The dashboard: the first page of the admin, with what runs, what is wrong, and how it healed.

`latest` reads the state once for all open pages of a process. `cards` and `charts` turn it into numbers and
points, and `views` answers the open pages, which ask every two seconds (executions/admin/live.py). All that it
reads is bounded, so it is as quick with a million executions as with ten, and it opens while Redis hangs.
"""
