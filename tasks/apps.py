from django.apps import AppConfig
from django.core.checks import register
from django.db import router

from executions.database import WriterOnly


class TasksConfig(AppConfig):
    name = "tasks"
    label = "harbor_tasks"
    verbose_name = "Jobs and queue"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        import tasks.actors  # noqa: F401  # defines the Celery tasks, so that every process can send them
        from tasks import checks, pipeline_log
        from tasks.jobs.overview import pass_counts

        register(checks.check_settings)
        router.routers.insert(0, WriterOnly(self.label))
        pipeline_log.connect()
        pass_counts.begin()
        self._listen_to_news()
        self._listen_to_celery()

    def _listen_to_news(self) -> None:
        from executions.news import changes_written, executions_changed, executions_deleted
        from tasks.jobs.lifecycle import job_stops
        from tasks.notifications import delivery_wakeup
        from tasks.pipeline import marks

        executions_changed.connect(marks.on_executions_changed, dispatch_uid="tasks.pipeline.marks")
        executions_deleted.connect(job_stops.on_executions_deleted, dispatch_uid="tasks.jobs.job_stops")
        changes_written.connect(
            delivery_wakeup.on_changes_written, dispatch_uid="tasks.notifications.delivery_wakeup"
        )

    def _listen_to_celery(self) -> None:
        from celery.signals import (
            beat_init,
            celeryd_after_setup,
            worker_process_shutdown,
            worker_ready,
            worker_shutdown,
        )

        from tasks import heartbeat, run_cycle, schedule
        from tasks.jobs.delivery import recorder, reporter
        from tasks.jobs.runtime import celery_events
        from tasks.notifications import deliverer_thread, delivery_wakeup
        from tasks.strategies import older_strategy

        for ending in (worker_process_shutdown, worker_shutdown):  # a pool without processes has the second only
            # the recorder first, because the reporter reports what it records
            ending.connect(recorder.of_this_process.stop, dispatch_uid="tasks.jobs.delivery.recorder")
            ending.connect(reporter.of_this_process.stop, dispatch_uid="tasks.jobs.delivery.reporter")
            ending.connect(
                deliverer_thread.of_this_process.stop, dispatch_uid="tasks.notifications.deliverer_thread"
            )
        worker_ready.connect(delivery_wakeup.on_worker_ready, dispatch_uid="tasks.notifications.delivery_wakeup")
        beat_init.connect(schedule.follow_environment, dispatch_uid="tasks.schedule")
        celery_events.connect()
        heartbeat.connect()
        celeryd_after_setup.connect(run_cycle.subscribe, dispatch_uid="tasks.run_cycle")
        if older := older_strategy():
            older.connect()
