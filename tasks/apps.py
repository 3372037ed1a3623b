from django.apps import AppConfig


class TasksConfig(AppConfig):
    name = "tasks"

    def ready(self) -> None:
        from celery.signals import beat_init, celeryd_after_setup, worker_process_shutdown, worker_shutdown

        from executions.signals import recorded, woken
        from tasks import alone, heartbeat, instances, run_cycle, schedule, wakeup
        from tasks.jobs import dropped, publishing
        from tasks.jobs.recorder import recorder
        from tasks.jobs.reporter import reporter

        recorded.connect(publishing.publish_what_was_recorded, dispatch_uid="tasks.jobs.publishing")
        for ending in (worker_process_shutdown, worker_shutdown):  # a pool without processes has the second only
            ending.connect(recorder.stop, dispatch_uid="tasks.jobs.recorder")  # first: what it records is reported
            ending.connect(reporter.stop, dispatch_uid="tasks.jobs.reporter")
        woken.connect(wakeup.send_tick, dispatch_uid="tasks.wakeup")
        beat_init.connect(schedule.follow_environment, dispatch_uid="tasks.schedule")
        dropped.connect()
        heartbeat.connect()
        celeryd_after_setup.connect(run_cycle.subscribe, dispatch_uid="tasks.run_cycle")
        alone.connect()
        instances.connect()
