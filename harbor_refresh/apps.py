from django.apps import AppConfig


class HarborRefreshConfig(AppConfig):
    name = "harbor_refresh"

    def ready(self) -> None:
        """Every process that has Django sends its messages by the app of this service."""
        from harbor_refresh import celery

        assert celery.app  # noqa: S101
