"""The service does what the API's description says, on every operation: schemathesis against a real gunicorn.

Schemathesis makes random requests that the description allows, and others that it does not. FUZZ_EXAMPLES is
their number for each operation (`make fuzz`, which tries the boundaries of each field as well); without it the
requests of each run are the same. Half of the ids are those of rows that exist: see `with_ids`.
"""

import copy
import json
import os
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx2
import hypothesis
import jsonschema_rs
import pytest
import requests
import schemathesis
from django.contrib.staticfiles import finders
from django.db import connection
from schemathesis.checks import positive_data_acceptance
from schemathesis.config import SchemathesisConfig

from harbor_refresh.executions.lifecycle.creation import NewExecution, NewTask, create
from harbor_refresh.executions.lifecycle.reports import Report, report
from harbor_refresh.executions.models import Execution, Subscription, Task
from harbor_refresh.executions.news.deliveries import subscriptions
from harbor_refresh.executions.status import MAX_ID
from harbor_refresh.web.api import api
from tests.integration.service.web import Web

DEEP = "FUZZ_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "6"))
#: The ids of `sample_rows`. No row has a small id, because a request that is not as described often has one. It
#: must find nothing.
OPEN, TASKS = (1_001, 1_020), (3_001, 3_060)
#: Ids that no row has, but for those that a run creates from CREATED on. So the ids next to the sample rows, and
#: those that are described as wrong here, are not found.
FAR = {"type": "integer", "minimum": 10**9, "maximum": MAX_ID}
CREATED = 10**15
#: The ids of subscriptions and actions; and of the subscription whose test is sent, which no operation may find:
#: another one may be changed to an address outside of this machine before its test.
FEW, TRIED = (4_001, 4_003), (10**12, 10**12)
#: An address that the guard against forged requests refuses, so nothing is sent.
NOWHERE = "http://localhost:9/"
#: Here a request that is as described may break a rule that JSON Schema cannot say, and is refused with 400: a
#: filter without a condition needs `all`, a name is given once, an address must be one that webhooks may reach.
WITH_RULES = re.compile(r"/executions/(stop|retry|resume|refresh|delete)$|/subscriptions(/{subscription_id})?$")
SECONDS = 120
SESSION = requests.Session()


def described() -> dict[str, Any]:
    description = api.get_openapi_schema()
    return copy.deepcopy(dict(description))


def with_ids(description: dict[str, Any]) -> dict[str, Any]:
    """Name the ids that exist, so that half of the requests find a row."""
    for path, operations in description["paths"].items():
        for operation in operations.values():
            for parameter in operation["parameters"]:
                if parameter["name"] == "execution_id":
                    parameter["schema"] = among(OPEN)
                if parameter["name"] == "task_id":
                    parameter["schema"] = among(TASKS)
                if parameter["name"] == "subscription_id":
                    parameter["schema"] = among(TRIED if path.endswith("/test") else FEW)
    if not DEEP:  # 10,000 tasks in a request take a second; tests/integration/executions/api have one of each
        for name in ("NewExecutionIn", "NewTasksIn", "ReportsIn"):
            properties = description["components"]["schemas"][name]["properties"]
            properties.get("tasks", properties.get("reports")).pop("maxItems")
    report_in = description["components"]["schemas"]["ReportIn"]["properties"]
    report_in["task_id"] = {"anyOf": [*among(TASKS)["anyOf"], {"type": "integer"}]}
    return description


def among(ids: tuple[int, int]) -> dict[str, Any]:
    return {"anyOf": [{"type": "integer", "minimum": ids[0], "maximum": ids[1]}, FAR]}


#: A request that is as described may meet a row whose state does not allow it: 404, 409, and 412 of DELETE.
#: A request that is not as described may lack its token (401), have another method (405), or be too large (413).
EXPECTED = {
    "positive_data_acceptance": {"expected-statuses": ["2xx", "404", "409", "412"]},
    "negative_data_rejection": {"expected-statuses": ["400", "401", "404", "405", "413", "422"]},
}


#: The boundaries of each field are a thousand requests, and are made when tests are collected: for `make fuzz`.
PHASES = {"coverage": {"enabled": DEEP}}
CONFIG = SchemathesisConfig.from_dict({"checks": EXPECTED, "phases": PHASES})
SCHEMA = schemathesis.openapi.from_dict(with_ids(described()), config=CONFIG)


@pytest.fixture(scope="module")
def sample_rows(web: Web) -> None:
    for ids, model in ((OPEN, Execution), (TASKS, Task), (FEW, Subscription)):
        _continue_at(ids[0], model._meta.db_table)
    for _ in range(OPEN[0], OPEN[1] + 1):
        create(NewExecution("REPLICATION", 7, extra_attrs={"repository": {"name": "a"}}, tasks=[NewTask("j")] * 3))
    report([Report(task, "Success", 1) for task in range(TASKS[0], TASKS[0] + 30)])
    for number in range(FEW[0], FEW[1] + 1):
        subscriptions.create(f"webhook {number}", NOWHERE)
    _continue_at(TRIED[0], Subscription._meta.db_table)
    subscriptions.create("tried", NOWHERE)
    for model in (Execution, Task, Subscription):
        _continue_at(CREATED, model._meta.db_table)
    Token.text = web.token


def _continue_at(number: int, table: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER SEQUENCE {table}_id_seq RESTART WITH {number}")


@SCHEMA.auth()
class Token:
    """Schemathesis sends the token, and at times another one or none."""

    text = ""

    def get(self, case: schemathesis.Case, context: schemathesis.AuthContext) -> str:
        return Token.text

    def set(self, case: schemathesis.Case, data: str, context: schemathesis.AuthContext) -> None:
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {data}"}


@SCHEMA.parametrize()
@hypothesis.settings(
    max_examples=EXAMPLES,
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
    derandomize=not DEEP,
    print_blob=True,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
@pytest.mark.usefixtures("sample_rows")
def test_every_operation_does_what_its_description_says(case: schemathesis.Case, web: Web) -> None:
    is_valid = case.meta is not None and case.meta.generation.mode.is_positive
    if is_valid and case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = str(uuid4())  # a second request with it would be refused, rightly
    # PostgreSQL stores no NUL, which JSON Schema cannot say of a text in extra_attrs, or in an address
    has_nul = "\\u0000" in json.dumps([case.body, case.query], default=str)
    may_be_refused = has_nul or WITH_RULES.search(case.operation.path)
    case.call_and_validate(
        base_url=web.url,
        session=SESSION,
        timeout=SECONDS,
        excluded_checks=[positive_data_acceptance] if may_be_refused else [],
    )


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in described()["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


OPERATIONS = dict(operations())
COMPONENTS = described()["components"]


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_an_operation_is_described(operation: dict[str, Any]) -> None:
    """A summary that is a plain imperative, its scope, its tags, its errors, and the meaning of its parameters."""
    assert re.fullmatch(r"[A-Z][^.]{5,70}", operation["summary"])
    assert len(operation["tags"]) == 1
    assert operation["security"]
    assert re.search("Needs the scope `(read|report|manage)`.", operation["description"])
    assert {"401", "403", "422", "429", "503"} <= {str(status) for status in operation["responses"]}
    for status, answer in operation["responses"].items():
        assert answer["description"]
        assert int(status) < 400 or list(answer["content"]) == ["application/problem+json"]


def test_an_example_of_a_field_is_valid() -> None:
    """The page of the API makes the examples of whole bodies and answers from these."""
    found = 0
    for name, schema in COMPONENTS["schemas"].items():
        for field, told in schema.get("properties", {}).items():
            for example in told.get("examples", ()):
                found += 1
                validator = jsonschema_rs.validator_for({**told, "components": COMPONENTS})
                assert validator.is_valid(example), (name, field, example)
    assert found > 50


def test_the_service_serves_this_description(web: Web) -> None:
    served = httpx2.get(f"{web.url}/api/v1/openapi.json", timeout=SECONDS)
    assert served.json() == json.loads(json.dumps(described()))


def test_the_page_of_the_description_asks_no_other_host(web: Web) -> None:
    page = httpx2.get(f"{web.url}/api/v1/docs", timeout=SECONDS).text
    files = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(files) >= 3
    assert [one for one in files if not finders.find(one.removeprefix("/static/"))] == []
    assert "//" not in page.replace("<!DOCTYPE", "")
