"""The arithmetic of the bench, and the environment and URLs it makes."""

import json
import os
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from benchmarks.existing_servers import with_options
from benchmarks.percentiles import percentile
from benchmarks.rows import Row, RowFile


def test_the_session_parameters_are_replaced_and_the_rest_of_the_url_stays() -> None:
    url = "postgresql://me:p%40ss@db.example:5433/harbor?sslmode=require&options=-c%20lock_timeout%3D9s"
    own = conninfo_to_dict(with_options(url, "-c lock_timeout=5s -c search_path=bench"))
    assert own == {
        "user": "me",
        "password": "p@ss",
        "host": "db.example",
        "port": "5433",
        "dbname": "harbor",
        "sslmode": "require",
        "options": "-c lock_timeout=5s -c search_path=bench",
    }


def test_the_file_holds_every_row_as_soon_as_it_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text("of an earlier run")
    file = RowFile(path)
    assert json.loads(path.read_text()) == []
    for count in (1, 2):
        file.add(Row("scan", count, 10, extra={"refreshes": 3}).as_json())
        rows = json.loads(path.read_text())
        assert [row["nodes"] for row in rows] == list(range(1, count + 1))
        assert rows[-1]["refreshes"] == 3
    assert os.listdir(tmp_path) == ["rows.json"]


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([7.0], 0.5, 7.0),
        ([1, 2, 3, 4], 0.5, 2),
        ([4, 3, 2, 1], 0.51, 3),
        (list(range(1, 101)), 0.99, 99),
        (list(range(1, 101)), 1.0, 100),
        (list(range(1, 101)), 0.07, 7),  # 0.07 x 100 is a little more than 7 for a computer
        ([], 0.5, None),
    ],
)
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(
    values: list[float], share: float, expected: float | None
) -> None:
    assert percentile(values, share) == expected
