"""The truth, on PostgreSQL alone: executions, their tasks, and the rule that derives the status of an execution
from its tasks. `lifecycle` has the use cases, one a module. `news` tells other apps what changed; this app imports
none of them.
"""

if __name__ == "executions":
    raise ImportError("write harbor_refresh.executions: this folder is one package, and has one name")
