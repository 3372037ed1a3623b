"""Gunicorn's logs: its own options say where they go, unless our configuration of gunicorn does."""

import os
import subprocess
import sys

ACCESS_LOG = """
import logging, logging.config
from settings import base
logger = logging.getLogger("gunicorn.access")
logger.propagate = False
logger.addHandler(logging.NullHandler())  # that of --access-logfile
logging.config.dictConfig(base.LOGGING)  # as Django does in each worker of gunicorn
print(len(logger.handlers), logger.propagate)
from harbor_refresh.logs.for_gunicorn import logconfig_dict
logging.config.dictConfig(logconfig_dict)
print(len(logger.handlers), logger.propagate)
"""


def test_the_settings_leave_the_logs_of_gunicorn_to_its_options() -> None:
    environ = os.environ | {"DJANGO_SETTINGS_MODULE": "settings.dev"}
    told = subprocess.run(
        [sys.executable, "-c", ACCESS_LOG], env=environ, capture_output=True, text=True, check=True
    ).stdout
    assert told.splitlines() == ["1 False", "0 True"]
