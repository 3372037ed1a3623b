"""Run the statements of this app."""

from harbor_refresh.executions.database import Statements

run = Statements(__package__.removesuffix(".sql"))
