"""Each block of a page that can be run, and each command in a sentence, has a test that runs it.

A test named here reads the page, so it runs what stands there now. What it proves is in its own file; here is only
that no block and no command is without one. The changelog is left out: it tells of the past.
"""

import re

import pytest

from tests import pages
from tests.unit.named_tests import TESTS, texts_of

PAGES = {
    str(path.relative_to(pages.ROOT)): path.read_text(encoding="utf-8")
    for path in [*pages.ROOT.glob("*.md"), *pages.ROOT.glob("docs/**/*.md"), *pages.ROOT.glob("deploy/**/*.md")]
}
RUN = {"sh", "sql", "redis", "python", "go", "yaml", "django"}
#: They are read and not run. What some of them show is compared with the truth by tests of their pages.
SHOWN = {"json", "text", "http", "mermaid", "js"}

MAKE = "acceptance/test_make.py"
SERVICE = "integration/service"
OPERATORS = f"{SERVICE}/test_operators_pages.py"
INSTALLING = f"{SERVICE}/test_installing.py::test_a_person_installs_the_service_by_typing_what_the_page_has"
UPGRADING = f"{OPERATORS}::test_the_commands_of_install_and_upgrade_and_rollback_work"
RESTORING = f"{OPERATORS}::test_a_backup_is_restored_as_the_page_says"
MONITORING = f"{SERVICE}/test_monitoring_commands.py"
PROBES = f"{MONITORING}::test_the_probes_fail_until_the_programs_of_the_alerts_run"
NOTIFICATIONS = "integration/executions/deliveries/test_notifications_page.py"
API = f"{SERVICE}/test_api_page.py"
SIMULATION = "acceptance/test_simulate.py"
CLIENT = f"{SERVICE}/client/test_client_calls.py"
HOOK = f"{SERVICE}/test_hook_page.py"
JOBS = "integration/testing/test_jobs_page.py"
OWN_PROJECT = "acceptance/test_own_project.py::test_executions_end_in_a_project_that_follows_the_page"
DEPLOY = "deploy/test_deploy_page.py::test_every_command_runs_or_needs_what_is_not_here"
PACKAGE = "distribution/test_package_page.py"
INSTALLED = f"{PACKAGE}::test_the_wheel_is_installed_with_its_driver_and_django_uses_it"
DEBIAN = f"{PACKAGE}::test_debian_has_the_packages_that_the_pages_name"
DJANGO_TASKS = "distribution/test_django_tasks.py::test_the_page_is_followed_word_for_word"
TESTING = "distribution/test_testing_page.py::test_the_page_is_followed_word_for_word"
ATTACH = "integration/attach/test_the_page.py::test_each_step_and_each_way_back_can_be_typed"

#: Tests that take every block in a language of a page, so that they run a new one as well.
EVERY = {
    "docs/alerts.md": {"sh": f"{OPERATORS}::test_each_command_of_the_alerts_works"},
    "docs/attach.md": {"sh": ATTACH},
    "docs/deploy.md": {
        "sh": DEPLOY,
        "yaml": "deploy/test_deploy_page.py::test_behind_a_pgbouncer_the_job_alone_has_a_direct_connection",
    },
    "docs/removal.md": {"sh": "hosts/test_removal_page.py::test_the_commands_of_the_page_leave_nothing_of_ours"},
    "docs/groups_and_chords.md": {
        "python": (
            "integration/testing/test_groups_and_chords_page.py::test_every_block_runs_and_every_value_is_right"
        )
    },
    "docs/migration.md": {
        "sh": f"{SERVICE}/test_migration_page.py::test_each_command_of_the_page_does_what_the_page_says"
    },
}
#: Of each other page: how a block begins, and the test that runs it.
BLOCKS = {
    "CONTRIBUTING.md": {"make up": f"{MAKE}::test_each_line_of_make_that_a_page_has_starts_what_it_says"},
    "README.md": {
        "make up": f"{MAKE}::test_up_runs_everything_until_ctrl_c_and_clean_removes_what_it_left",
        "@app.task": f"{JOBS}::test_the_example_of_the_readme_runs",
        "python -m harbor_refresh.client": f"{CLIENT}::test_the_commands_of_the_readme_run",
    },
    "docs/api.md": {
        "python manage.py harbor token": (
            f"{API}::test_the_command_of_the_page_makes_a_token_that_reads_and_reports_for_so_many_days"
        ),
        "call()": f"{API}::test_the_example_for_curl_runs",
        "import os": f"{API}::test_the_example_for_python_runs",
        "package main": f"{API}::test_the_example_for_go_is_compiled_and_runs",
    },
    "docs/client.md": {
        "import os": f"{CLIENT}::test_the_runner_of_the_page_runs",
        "export HARBOR": f"{CLIENT}::test_the_shell_commands_of_the_page_run",
    },
    "docs/django_tasks.md": {
        "# shop/settings.py": DJANGO_TASKS,
        "# shop/tasks.py": DJANGO_TASKS,
        "# shop/settings_of_tests.py": DJANGO_TASKS,
        "# shop/tests.py": DJANGO_TASKS,
        "python manage.py test": DJANGO_TASKS,
    },
    "docs/doctor.md": {
        "python manage.py doctor": (
            "integration/checks/test_the_doctor_page.py::test_each_command_of_the_page_does_what_the_page_says"
        )
    },
    "docs/hook.md": {
        "curl": f"{HOOK}::test_the_report_by_curl_is_taken",
        "import json": f"{HOOK}::test_the_secret_that_the_page_makes_signs_the_report_that_it_shows",
        "from harbor_refresh": f"{HOOK}::test_the_function_for_check_ins_gets_them",
    },
    "docs/jobs.md": {
        "# shop/tasks.py": OWN_PROJECT,
        "from harbor_refresh import start": OWN_PROJECT,
        "execution.progress()": OWN_PROJECT,
        "sudo apt-get install": DEBIAN,
        "sudo -u postgres createuser": OWN_PROJECT,
        "django-admin startproject": OWN_PROJECT,
        '# shop/settings.py\nINSTALLED_APPS += ["harbor_refresh.executions"': OWN_PROJECT,
        '# shop/settings.py\nINSTALLED_APPS += ["shop"]': OWN_PROJECT,
        "# shop/settings.py\nHARBOR_REFRESH": OWN_PROJECT,
        "# shop/celery.py": OWN_PROJECT,
        "# shop/__init__.py": OWN_PROJECT,
        "python manage.py migrate": OWN_PROJECT,
        "HARBOR_REFRESH = {": OWN_PROJECT,
        "harbor_refresh.register_admin": OWN_PROJECT,
        "from harbor_refresh import ExecutionInline": OWN_PROJECT,
        "from dataclasses": f"{JOBS}::test_a_registered_type_is_an_argument_of_a_job",
        'start("PACKING"': f"{JOBS}::test_a_registered_type_is_an_argument_of_a_job",
        "async def mirror": f"{JOBS}::test_an_asynchronous_view_starts_and_awaits_an_execution",
        "job.check_in": f"{JOBS}::test_a_job_checks_in_by_text_by_a_bar_or_by_both",
        "@app.task(base=TrackedJob, keep_result": f"{JOBS}::test_results_are_printed_in_the_order_of_the_jobs",
        "@app.task(base=TrackedJob, concurrency": f"{JOBS}::test_a_limit_of_the_page_is_declared_and_has_its_key",
        'start("SCAN", jobs=nightly)': f"{JOBS}::test_executions_take_turns_by_weight_and_by_tenant",
        'start("REPLICATION", jobs=': f"{JOBS}::test_the_metadata_of_a_job_is_stored_with_its_task",
        "# shop/urls.py": f"{JOBS}::test_the_progress_is_at_the_addresses_of_a_project_and_in_its_template",
        "{% load harbor_refresh %}": (
            f"{JOBS}::test_the_progress_is_at_the_addresses_of_a_project_and_in_its_template"
        ),
        'execution = start("REPLICATION", vendor_id=7, open=': (
            f"{JOBS}::test_a_producer_adds_pages_and_closes_and_a_job_adds_what_it_finds"
        ),
        "@app.task(base=TrackedJob)\ndef crawl": (
            f"{JOBS}::test_a_producer_adds_pages_and_closes_and_a_job_adds_what_it_finds"
        ),
        "with transaction.atomic()": (
            f"{JOBS}::test_two_transactions_that_add_to_the_same_executions_do_not_deadlock"
        ),
        "@app.task(base=TrackedJob)\ndef mirror_project": (
            f"{JOBS}::test_a_job_starts_a_child_of_its_execution_for_each_repository"
        ),
        "@app.task(base=TrackedJob, soft_time_limit=60)\nasync def": (
            f"{JOBS}::test_an_async_def_is_a_job_that_uses_the_database"
        ),
        'start("MIRROR", jobs=': f"{JOBS}::test_an_execution_with_a_deadline_ends_before_it",
        'execution = start("MIRROR"': f"{JOBS}::test_an_execution_of_one_name_is_started_once",
        "execution.progress(deep=True)": (
            f"{JOBS}::test_a_job_starts_a_child_of_its_execution_for_each_repository"
        ),
        "@app.task\ndef publish": f"{JOBS}::test_the_callbacks_of_an_execution_are_told_its_end",
        "celery -A shop worker -n long@%h": (
            "acceptance/test_own_project.py::test_each_kind_of_work_has_the_worker_that_the_page_gives_it"
        ),
    },
    "docs/monitoring.md": {
        "# of a web process": PROBES,
        "pip install -r requirements-traces.txt": (
            f"{MONITORING}::test_the_variables_of_the_page_send_the_traces_of_callers_who_ask_for_them"
        ),
    },
    "docs/notifications.md": {
        "from harbor_refresh import Change": (
            f"{NOTIFICATIONS}::test_the_handler_and_the_receiver_of_the_page_are_told_of_a_failure"
        ),
        "from harbor_refresh import execution_changed": (
            f"{NOTIFICATIONS}::test_the_handler_and_the_receiver_of_the_page_are_told_of_a_failure"
        ),
        "from standardwebhooks": (
            f"{NOTIFICATIONS}::test_a_request_has_the_form_that_the_page_shows_and_is_verified_as_it_says"
        ),
        "curl": f"{NOTIFICATIONS}::test_the_command_of_the_page_rotates_a_secret_for_a_day",
    },
    "docs/operations.md": {
        "CREATE ROLE refresh": INSTALLING,
        "export DJANGO_SETTINGS_MODULE": INSTALLING,
        "python manage.py check --deploy": INSTALLING,
        "python manage.py migrate --plan": UPGRADING,
        "pg_dump": RESTORING,
        "pg_restore": RESTORING,
        'psql "$DATABASE_URL" -c "SELECT setval': RESTORING,
        "python manage.py migrate\npython manage.py harbor repair drift": RESTORING,
        'redis-cli -u "$REDIS_URL" flushdb': RESTORING,
        "SCARD": f"{OPERATORS}::test_the_commands_that_are_stable_answer_what_the_page_says",
        "ALTER ROLE refresh": (
            f"{SERVICE}/test_installing.py::test_the_statements_for_a_pooler_limit_every_session_of_the_role"
        ),
        "python manage.py migrate && python": (
            "deploy/test_programs_by_hand.py::test_the_programs_of_the_page_become_well_work_and_end"
        ),
    },
    "docs/package.md": {
        'pip install "harbor_refresh-': INSTALLED,
        'pip install "psycopg[binary]"': DEBIAN,
        "grep -rn psycopg2": f"{PACKAGE}::test_the_search_for_psycopg2_finds_each_line",
        "python -c": INSTALLED,
        "from harbor_refresh.redis_transport": (
            "hosts/test_a_celery_app_is_joined.py"
            "::test_a_project_gets_the_parts_of_our_workers_by_the_lines_of_the_page"
        ),
    },
    "docs/testing.md": {
        "# shop/tasks.py": TESTING,
        "# shop/settings_of_tests.py": TESTING,
        "# shop/tests.py": TESTING,
        "python manage.py test": TESTING,
        "# conftest.py": TESTING,
        "# test_copies.py": TESTING,
        "pytest": TESTING,
    },
}

#: test_every_command.py finds those of the first kind in the sentences of all pages, and test_make.py the others.
FOUND_BY_THEIR_TEST = re.compile(r"(python )?manage\.py |make |python -m benchmarks ")
#: What else is a command in a sentence.
COMMAND = re.compile(
    r"(\w+=\S+ )?(python -|pip |celery |gunicorn |psql |pg_isready |redis-cli |docker |kubectl |promtool |curl "
    r"|apt-get |\.ci/|ALTER |GRANT |SELECT |SCARD |CREATE |DROP )"
)
NOT_RUN = "docs/deploy.md says that it was not run: it needs an engine or a cluster"
NOT_TYPED = "no command to type: its name, or a part of it"
#: The test that runs it, or why none does.
SENTENCES = {
    ".ci/run": "what CI runs: .github/workflows/ci.yml",
    "ALTER ROLE": NOT_TYPED,
    "ALTER ROLE … IN DATABASE … SET": NOT_TYPED,
    "ALTER TABLE task SET (autovacuum_vacuum_scale_factor = 0.02)": (
        f"{OPERATORS}::test_the_advice_for_autovacuum_is_a_statement_that_both_tables_take"
    ),
    "GRANT SELECT, UPDATE ON execution_job, execution_need TO core;": (
        "integration/jobs/test_the_hook.py::test_a_core_with_a_role_of_its_own_ends_jobs_by_the_grant_of_the_page"
    ),
    "GRANT harbor TO CURRENT_USER": (
        "integration/attach/test_rights_without_a_superuser.py"
        "::test_an_administrator_who_is_no_superuser_gives_all_rights_and_takes_them_back"
    ),
    "GRANT harbor_refresh TO harbor": (
        "integration/attach/test_the_page.py"
        "::test_a_database_is_upgraded_and_restored_on_another_server_with_our_tables"
    ),
    "GRANT pg_read_all_stats": NOT_TYPED,
    "SECURE_SSL_REDIRECT=false docker compose up -d": NOT_RUN,
    "SELECT pg_terminate_backend(pid)": (
        f"{OPERATORS}::test_the_statement_of_the_alerts_ends_a_transaction_that_is_open"
    ),
    "celery -A harbor_refresh": NOT_TYPED,
    "celery -A harbor_refresh beat --pidfile=": PROBES,
    "celery -A harbor_refresh worker": PROBES,
    "celery -A harbor_refresh worker -Q NAME": PROBES,
    "celery worker --pool": NOT_TYPED,
    "docker build": NOT_TYPED,
    "docker compose": NOT_TYPED,
    "docker compose build": NOT_RUN,
    "docker compose exec": NOT_TYPED,
    "docker compose exec -T postgres pg_dump -U refresh -Fc refresh > refresh.dump": NOT_RUN,
    "docker compose ps": NOT_RUN,
    "docker compose up -d": NOT_RUN,
    "docker compose up -d --force-recreate": NOT_RUN,
    "kubectl -n harbor-refresh port-forward service/flower 5555:80": NOT_RUN,
    "kubectl -n harbor-refresh rollout undo deployment/web": NOT_RUN,
    "kubectl create": NOT_TYPED,
    'pg_isready -d "$DATABASE_URL"': f"{MONITORING}::test_the_servers_answer_the_commands_of_the_alerts",
    "pip install -r requirements.txt": (
        "deploy/test_image.py::test_the_steps_of_the_image_make_a_service_whose_programs_start_work_and_end"
    ),
    "pip install django-tasks": DJANGO_TASKS,
    "promtool test rules": f"{SERVICE}/test_alerts.py::test_each_rule_fires_when_it_must_and_only_then",
    "python -c \"import base64, secrets; print('whsec_' + base64.b64encode(secrets.token_bytes(32)).decode())\"": (
        f"{HOOK}::test_the_secret_that_the_page_makes_signs_the_report_that_it_shows"
    ),
    "python -m benchmarks": (
        "integration/benchmarks/test_bench.py::test_there_is_a_row_for_every_strategy_and_for_both_limits"
    ),
    "python -m examples.simulation": f"{SIMULATION}::test_runners_with_every_fault_leave_every_status_right",
    "python -m examples.simulation --demo": f"{SIMULATION}::test_the_demo_makes_traffic_and_ends_at_once",
    'redis-cli -u "$REDIS_URL" flushdb': RESTORING,
    'redis-cli -u "$REDIS_URL" ping': f"{MONITORING}::test_the_servers_answer_the_commands_of_the_alerts",
}


def runnable(page: str) -> list[str]:
    return [one.code for one in pages.blocks(PAGES[page]) if one.language in RUN]


def commands() -> set[str]:
    """Every other command in a sentence."""
    spans = {span for text in PAGES.values() for span in pages.spans(text)}
    return {one for one in spans if COMMAND.match(one) and not FOUND_BY_THEIR_TEST.match(one)}


def test_every_block_says_its_language_and_each_is_known() -> None:
    for page, text in PAGES.items():
        assert {one.language for one in pages.blocks(text)} <= RUN | SHOWN, page


def test_each_page_with_blocks_is_in_one_of_the_tables_and_no_other() -> None:
    assert not EVERY.keys() & BLOCKS.keys()
    assert {page for page in PAGES if runnable(page)} == EVERY.keys() | BLOCKS.keys()


@pytest.mark.parametrize("page", EVERY)
def test_a_test_of_every_block_can_take_each(page: str) -> None:
    assert {one.language for one in pages.blocks(PAGES[page])} - SHOWN == EVERY[page].keys()
    for named in EVERY[page].values():
        refuse_what_is_not_there(page, named)


@pytest.mark.parametrize("page", BLOCKS)
def test_each_block_of_a_page_has_its_test_and_each_test_its_block(page: str) -> None:
    beginnings = BLOCKS[page]
    for code in runnable(page):
        assert len([one for one in beginnings if code.startswith(one)]) == 1, f"no test, or two, for:\n{code}"
    for one, named in beginnings.items():
        assert len([code for code in runnable(page) if code.startswith(one)]) == 1, (
            f"one block must begin with {one}"
        )
        refuse_what_is_not_there(page, named)


def refuse_what_is_not_there(page: str, named: str) -> None:
    """The test must exist, and its file must read the page."""
    path, name = named.split("::")
    assert name in texts_of(path), named
    assert f'pages.read("{page}")' in (TESTS / path).read_text(encoding="utf-8"), named


def test_each_command_in_a_sentence_has_its_test() -> None:
    assert commands() == SENTENCES.keys()
    for named in SENTENCES.values():
        if "::" in named:
            path, name = named.split("::")
            assert name in texts_of(path), named
