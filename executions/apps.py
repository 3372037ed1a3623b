from django.apps import AppConfig
from django.core.checks import register


class ExecutionsConfig(AppConfig):
    name = "executions"
    verbose_name = "Harbor Refresh"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from executions import narrator
        from executions.checks import check_settings
        from executions.usecases.jobs import counting

        register(check_settings)
        narrator.begin()
        counting.begin()
