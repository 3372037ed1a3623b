"""The dashboard: the first page of the admin, with what runs, what is wrong, and how it healed.

`latest` reads the state once for all open pages of a process, and `views` answers those, which ask every two
seconds (executions/admin/site_pages.py). All that it reads is bounded, and it opens while Redis hangs.
"""
