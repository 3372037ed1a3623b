"""Flower's options. Flower executes this file (`--conf`), and reads the names that are options of its own.

An option of the command line overrides this file, and this file overrides a variable FLOWER_…. So this file reads
the variables that an operator may set. Without FLOWER_BASIC_AUTH, login.py decides who may use it.
"""

import os

import django
from django.apps import apps
from flower.utils import strtobool

from harbor_refresh.flower import login

if not apps.ready:
    django.setup()
login.adapt()

#: The arguments name the executions of a subtask; Flower's own default leaves them out.
tasks_columns = os.environ.get("FLOWER_TASKS_COLUMNS") or "name,args,state,received,started,runtime,worker,uuid"
read_only = bool(strtobool(os.environ.get("FLOWER_READ_ONLY") or "true"))  # type: ignore[no-untyped-call]
#: In memory. Each takes some 5 kB.
max_tasks = int(os.environ.get("FLOWER_MAX_TASKS") or 20_000)

if not os.environ.get("FLOWER_BASIC_AUTH"):
    auth = "the admin"
    auth_provider = "harbor_refresh.flower.login.AdminLogin"
