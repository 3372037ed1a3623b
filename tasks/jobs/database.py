"""Run the statements of jobs (tasks/jobs/sql)."""

from harbor_refresh.executions.database import Statements

run = Statements(__package__)
