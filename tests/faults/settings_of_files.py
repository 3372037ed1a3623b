"""The settings of tests, with the filesystem transport of kombu as the broker: the folder that FILES names."""

import os

from settings.test import *  # noqa: F403
from tests.faults.brokers import of_files

_files = of_files(os.environ["FILES"])
CELERY_BROKER_URL = CELERY_BROKER_READ_URL = CELERY_BROKER_WRITE_URL = _files["broker_url"]
CELERY_BROKER_TRANSPORT_OPTIONS = _files["broker_transport_options"]
CELERY_BROKER_USE_SSL = None
