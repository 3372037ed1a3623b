"""Errors during a refresh: an error of a row fails that row, an error of the server fails no row."""

import pytest

from harbor_refresh.executions.errors import DatabaseAway
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.lifecycle.rollup import Refreshed, refresh
from tests.integration.sample_executions import fails_with, made, status_of

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize("sqlstate", ["53000", "53200", "53400", "54000", "23514"])
def test_an_error_of_one_row_fails_that_row_alone(sqlstate: str) -> None:
    (good, (good_task,)), (bad, (bad_task,)) = made(1), made(1)
    report([Report(good_task, "Success"), Report(bad_task, "Success")])
    fails_with(sqlstate, bad)
    assert refresh([good.pk, bad.pk]) == Refreshed(succeeded=1, changed=1, failed={bad.pk: "no more"})
    assert (status_of(good), status_of(bad)) == ("Success", "Running")


@pytest.mark.parametrize("sqlstate", ["08006", "53100", "53300", "57P01", "57P02", "57P03", "25006", "25P03"])
def test_an_error_of_the_server_fails_no_execution(sqlstate: str) -> None:
    (good, (good_task,)), (bad, (bad_task,)) = made(1), made(1)
    report([Report(good_task, "Success"), Report(bad_task, "Success")])
    fails_with(sqlstate, bad)
    with pytest.raises(DatabaseAway, match=r"^PostgreSQL: no more$"):
        refresh([good.pk, bad.pk])
    assert (status_of(good), status_of(bad)) == ("Running", "Running")
