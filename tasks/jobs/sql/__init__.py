"""Run the statements of jobs."""

from harbor_refresh.executions.database import Statements

run = Statements(__package__.removesuffix(".sql"))
