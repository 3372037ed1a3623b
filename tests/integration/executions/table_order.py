"""The order in which a scan without an index meets the rows of a table."""

from django.db import connection


def rows_come_in_another_order(database: str, table: str, first: int) -> None:
    """From now on a new connection reads this table in the order of its pages, and this row comes last there."""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET id = id WHERE id = %s", [first])
        cursor.execute(f"SELECT id FROM {table} ORDER BY ctid DESC LIMIT 1")
        assert cursor.fetchone() == (first,)
        for way in ("indexscan", "indexonlyscan", "bitmapscan", "mergejoin", "nestloop"):
            cursor.execute(f"ALTER DATABASE {database} SET enable_{way} = off")


def in_another_order_on_disk(task: int) -> None:
    """Its row is the last one now, wherever a scan without an order meets it."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE task SET update_time = now() WHERE id = %s", [task])
