"""The embedded servers, by the names that `make up` and the tests use."""

from harbor_refresh.local.errors import LocalError
from harbor_refresh.local.postgres import EmbeddedPostgres
from harbor_refresh.local.redis import EmbeddedRedis

__all__ = ["EmbeddedPostgres", "EmbeddedRedis", "LocalError"]
