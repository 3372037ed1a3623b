from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self

from django.db import models

from harbor_refresh.executions.attachment import is_attached


class HarborsRow(models.Model):
    """A row that Harbor may have written. NULL in it reads as the zero of its type, as Harbor reads it.

    In our own tables these columns are never NULL. Values that are read without a row (`values_list`) stay NULL.
    """

    #: Columns that Harbor leaves NULL, with their types. Its moments stay None.
    nullable: ClassVar[Mapping[str, type]] = {}

    class Meta:
        abstract = True

    @classmethod
    def from_db(cls, db: str | None, field_names: Collection[str], values: Collection[Any], **newer: Any) -> Self:
        if is_attached():
            pairs = zip(field_names, values, strict=False)
            values = [cls.nullable.get(name, _none)() if value is None else value for name, value in pairs]
        return super().from_db(db, field_names, values, **newer)


def zeros(**types: type) -> Mapping[str, type]:
    """Name the columns that Harbor leaves NULL, with their types."""
    return types


def _none() -> None:
    return None
