from django.apps import AppConfig
from django.core.checks import register
from django.db import router
from django.db.models.signals import post_migrate

from harbor_refresh.executions.database import WriterOnly


class TasksConfig(AppConfig):
    name = "harbor_refresh.tasks"
    label = "harbor_tasks"
    verbose_name = "Jobs and queue"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        import harbor_refresh.tasks.celery_tasks  # noqa: F401  # so that every process can send them
        from harbor_refresh.executions.checks import OURS
        from harbor_refresh.executions.news import callbacks
        from harbor_refresh.executions.queries.filters import register_condition
        from harbor_refresh.tasks import event_counts, pipeline_log, schedule
        from harbor_refresh.tasks.checks import host_checks, name_checks
        from harbor_refresh.tasks.checks import setting_checks as checks
        from harbor_refresh.tasks.jobs import end_callbacks
        from harbor_refresh.tasks.jobs.overview import pass_counts, selection
        from harbor_refresh.tasks.overview import events

        register(checks.check_settings, OURS)
        register(name_checks.check_names, OURS)
        register(host_checks.check_host, OURS)
        router.routers.insert(0, WriterOnly(self.label))
        pipeline_log.connect()
        register_condition("has_jobs", selection.has_jobs)
        callbacks.find_by(end_callbacks.find)
        pass_counts.begin()
        post_migrate.connect(schedule.restore_rows, sender=self, dispatch_uid="tasks.schedule")
        events.connect()
        event_counts.connect()
        self._listen_to_news()
        self._listen_to_celery()

    def _listen_to_news(self) -> None:
        from harbor_refresh.executions.news.after_commit import (
            changes_written,
            executions_deleted,
            executions_touched,
        )
        from harbor_refresh.tasks.jobs.lifecycle import job_stops
        from harbor_refresh.tasks.notifications import delivery_wakeup
        from harbor_refresh.tasks.pipeline import marks

        executions_touched.connect(marks.on_executions_touched, dispatch_uid="tasks.pipeline.marks")
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

        from harbor_refresh.tasks import celery_tasks, heartbeat, schedule
        from harbor_refresh.tasks.broker import given_back
        from harbor_refresh.tasks.jobs.delivery import recorder, reporter
        from harbor_refresh.tasks.jobs.runtime import celery_events
        from harbor_refresh.tasks.notifications import deliverer_thread, delivery_wakeup
        from harbor_refresh.tasks.pauses import held_queues
        from harbor_refresh.tasks.strategies import strategy
        from harbor_refresh.tasks.without_redis import mode

        for ending in (worker_process_shutdown, worker_shutdown):  # a pool without processes has the second only
            # the recorder first, because the reporter reports what it records
            ending.connect(recorder.of_this_process.stop, dispatch_uid="tasks.jobs.delivery.recorder")
            ending.connect(reporter.of_this_process.stop, dispatch_uid="tasks.jobs.delivery.reporter")
            ending.connect(
                deliverer_thread.of_this_process.stop, dispatch_uid="tasks.notifications.deliverer_thread"
            )
        worker_ready.connect(delivery_wakeup.on_worker_ready, dispatch_uid="tasks.notifications.delivery_wakeup")
        beat_init.connect(schedule.follow_setting, dispatch_uid="tasks.schedule")
        celery_events.connect()
        heartbeat.connect()
        given_back.connect()
        celeryd_after_setup.connect(mode.decide, dispatch_uid="tasks.without_redis.mode")
        celeryd_after_setup.connect(celery_tasks.subscribe, dispatch_uid="tasks.run_cycle")
        # after the line above, so that the channel of the cycles is among the queues
        celeryd_after_setup.connect(held_queues.on_setup, dispatch_uid="tasks.pauses.held_queues")
        worker_ready.connect(held_queues.on_ready, dispatch_uid="tasks.pauses.held_queues")
        worker_shutdown.connect(held_queues.on_shutdown, dispatch_uid="tasks.pauses.held_queues")
        strategy().connect()
