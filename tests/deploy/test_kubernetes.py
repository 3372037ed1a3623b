"""deploy/kubernetes: every overlay is built, valid for several versions of Kubernetes, and consistent with the
image, the settings and the queue."""

import json
import tomllib
from collections.abc import Iterator
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
from django.db import connection
from redis import Redis

from harbor_refresh.executions.news.audit import at_terminal
from harbor_refresh.tasks.broker.celery_queues import JOBS
from harbor_refresh.tasks.conf import refresh_settings
from harbor_refresh.tasks.jobs import sender
from harbor_refresh.tasks.models.job import Job, JobState
from harbor_refresh.tasks.operations.pauses import pause
from harbor_refresh.tasks.queue import execution_queue
from harbor_refresh.tasks.queue.keys import Keys
from harbor_refresh.tasks.strategies.older import this_instance
from harbor_refresh.web.probes import VIEWS
from tests.deploy.container import HEALTH, SERVICE
from tests.deploy.dockerfile import ROOT
from tests.deploy.manifests import OVERLAYS, built, one, pods
from tests.deploy.programs import (
    OF_THE_IMAGE,
    PROGRAMS,
    known_variables,
    lacks_of_web,
    missing,
    seconds_to_end,
    size_of,
)
from tests.integration.jobs.sample_jobs import beats, recorded

OVERLAY = pytest.mark.parametrize("overlay", OVERLAYS)
#: The oldest and the newest that the package brings; two between are slow tests.
VERSIONS = ("1.25", "1.37", "1.29", "1.33")
PROGRAM = {"web", "worker", "beat", "flower"}
SECRETS = "/run/secrets/harbor-refresh"
OF_KEDA = {"ScaledObject", "TriggerAuthentication"}
#: Of the fields that we use, because KEDA's own schemas are in no package.
KEDA = jsonschema.Draft202012Validator(json.loads((ROOT / "tests/deploy/keda.json").read_text(encoding="utf-8")))
NAME = "app.kubernetes.io/name"


@OVERLAY
@pytest.mark.parametrize(
    "version", [pytest.param(one, marks=[pytest.mark.slow] if one in VERSIONS[2:] else []) for one in VERSIONS]
)
def test_every_object_is_valid_for_this_version_of_kubernetes(overlay: str, version: str) -> None:
    of_kubernetes = [each for each in built(overlay) if each["kind"] not in OF_KEDA]
    assert {kubernetes_validate.validate(each, version, strict=True) for each in of_kubernetes} == {version}


def test_the_objects_of_keda_are_valid() -> None:
    of_keda = [each for each in built("overlays/keda") if each["kind"] in OF_KEDA]
    assert {each["kind"] for each in of_keda} == OF_KEDA
    assert [error.message for each in of_keda for error in KEDA.iter_errors(each)] == []


@OVERLAY
def test_everything_is_in_one_namespace_that_enforces_the_restricted_rules(overlay: str) -> None:
    namespaced = [each for each in built(overlay) if each["kind"] != "Namespace"]
    assert {each["metadata"]["namespace"] for each in namespaced} == {"harbor-refresh"}
    labels = one(overlay, "Namespace", "harbor")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def containers(overlay: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, pod in pods(overlay).items():
        for each in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
            yield name, each


@OVERLAY
def test_a_pod_has_no_rights_and_keeps_the_restricted_rules(overlay: str) -> None:
    user, group = map(int, SERVICE.only("USER").rest.split(":"))
    of_pods = {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": group,
        "fsGroup": group,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for name, pod in pods(overlay).items():
        spec = pod["spec"]
        assert spec["securityContext"] == of_pods, name
        assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == ("harbor-refresh", False)
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        assert [next(iter(set(volume) - {"name"})) for volume in spec["volumes"]] == ["secret", "emptyDir"]
    for name, container in containers(overlay):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, name
        assert {each["mountPath"]: each.get("readOnly", False) for each in container["volumeMounts"]} == {
            SECRETS: True,
            "/tmp": False,  # noqa: S108
        }
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}, name
        assert set(container["resources"]["limits"]) == {"memory"}, name
    assert one(overlay, "ServiceAccount", "harbor")["automountServiceAccountToken"] is False


@OVERLAY
def test_tmp_holds_the_bodies_that_arrive_at_once_and_fits_into_the_memory_of_each_program(overlay: str) -> None:
    for name, pod in pods(overlay).items():
        tmp = pod["spec"]["volumes"][1]["emptyDir"]
        assert tmp["medium"] == "Memory"
        (container,) = pod["spec"]["containers"]
        memory = container["resources"]["limits"]["memory"]
        assert size_of(tmp["sizeLimit"]) < size_of(memory), name
        if name == "web":
            assert lacks_of_web(tmp["sizeLimit"], memory) == []


@OVERLAY
def test_every_program_is_one_that_the_image_knows_and_waits_for_the_migrations(overlay: str) -> None:
    started = {name: pod["spec"]["containers"][0]["args"] for name, pod in pods(overlay).items()}
    assert started == {name: [name] for name in (*PROGRAM, "migrate")}
    assert set(started) <= PROGRAMS
    before = {name: pod["spec"].get("initContainers", []) for name, pod in pods(overlay).items()}
    waits = {name: [each["args"] for each in first] for name, first in before.items()}
    assert waits == {name: [["migrated"]] for name in PROGRAM} | {"migrate": []}
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert {container["image"] for _, container in containers(overlay)} == {f"harbor-refresh:{version}"}


@OVERLAY
def test_every_variable_is_known_and_none_is_missing_and_secrets_are_files(overlay: str) -> None:
    (settings,) = (each for each in built(overlay) if each["kind"] == "ConfigMap")
    given = settings["data"]
    for _, container in containers(overlay):
        assert container["envFrom"] == [{"configMapRef": {"name": settings["metadata"]["name"]}}]
        own = {each["name"] for each in container.get("env", [])}
        assert own - known_variables() == set()
    assert set(given) - known_variables() == set()
    assert missing(set(given)) == []
    files = {name: value for name, value in given.items() if name.endswith("_FILE")}
    assert files == {
        f"{name.upper()}_FILE": f"{SECRETS}/{name}" for name in ("database_url", "redis_url", "secret_key")
    }
    for pod in pods(overlay).values():
        secret = pod["spec"]["volumes"][0]["secret"]
        assert secret == {"secretName": "harbor-refresh", "defaultMode": 0o440}
    assert "Secret" not in {each["kind"] for each in built(overlay)}, "secrets are named, and made by hand"


@OVERLAY
def test_what_selects_pods_finds_some(overlay: str) -> None:
    labels = [pod["metadata"]["labels"] for pod in pods(overlay).values()]

    def found(selector: dict[str, str]) -> list[str]:
        return [each[NAME] for each in labels if selector.items() <= each.items()]

    for each in built(overlay):
        kind, name, spec = each["kind"], each["metadata"]["name"], each.get("spec", {})
        if kind == "Service":
            assert found(spec["selector"]) == [name]
        elif kind in ("PodDisruptionBudget", "Deployment", "StatefulSet"):
            assert found(spec["selector"]["matchLabels"]) == [name]
        elif kind == "NetworkPolicy":
            everywhere = sorted((*PROGRAM, "migrate")) if name == "programs" else [name]
            assert sorted(found(spec["podSelector"]["matchLabels"])) == everywhere
    targets = [
        each["spec"]["scaleTargetRef"] for each in built(overlay) if "scaleTargetRef" in each.get("spec", {})
    ]
    there = {(each["apiVersion"], each["kind"], each["metadata"]["name"]) for each in built(overlay)}
    assert [one for one in targets if (one["apiVersion"], one["kind"], one["name"]) not in there] == []


@OVERLAY
def test_who_sends_webhooks_reaches_https_and_the_others_only_names_and_servers(overlay: str) -> None:
    """Workers send deliveries, and web the test of a webhook."""
    reached: dict[str, set[int]] = {}
    policies = [each["spec"] for each in built(overlay) if each["kind"] == "NetworkPolicy"]
    for name, pod in pods(overlay).items():
        labels = pod["metadata"]["labels"].items()
        its = [each for each in policies if each["podSelector"]["matchLabels"].items() <= labels]
        assert any("Egress" in each["policyTypes"] for each in its), f"{name} reaches everything"
        rules = [rule for each in its if "Egress" in each["policyTypes"] for rule in each["egress"]]
        reached[name] = {port["port"] for rule in rules for port in rule["ports"]}
    servers = {53, 5432, 6379}
    others = dict.fromkeys(("beat", "flower", "migrate"), servers)
    assert reached == {"web": servers | {443}, "worker": servers | {443}, **others}


@OVERLAY
def test_a_probe_asks_what_the_program_answers(overlay: str) -> None:
    every = pods(overlay)
    for name in PROGRAM:
        (container,) = every[name]["spec"]["containers"]
        probes = {key: each for key, each in container.items() if key.endswith("Probe")}
        assert "livenessProbe" in probes, name
        for probe in probes.values():
            if "exec" in probe:
                assert probe["exec"]["command"] == [HEALTH, name]
                assert probe["timeoutSeconds"] >= 40, "the check waits for answers, and then for 15 s of progress"
            else:
                assert [port["name"] for port in container["ports"]] == [probe["httpGet"]["port"]]
                known = set(VIEWS) if name == "web" else {"/healthcheck"}
                assert probe["httpGet"]["path"] in known
    ports = [every[name]["spec"]["containers"][0]["ports"][0]["containerPort"] for name in ("web", "flower")]
    assert SERVICE.only("EXPOSE").rest.split() == [str(port) for port in ports]
    assert [OF_THE_IMAGE["WEB_PORT"], OF_THE_IMAGE["FLOWER_PORT"]] == [str(port) for port in ports]


@OVERLAY
def test_a_program_has_twice_the_time_that_it_takes_to_end(overlay: str) -> None:
    """Web has five seconds more than it takes: gunicorn ends its requests itself. `preStop` is before SIGTERM."""
    every = pods(overlay)
    grace = {name: every[name]["spec"]["terminationGracePeriodSeconds"] for name in PROGRAM}
    (container,) = every["web"]["spec"]["containers"]
    before = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    needed = {name: 2 * seconds for name, seconds in seconds_to_end().items()}
    needed["web"] = before + seconds_to_end()["web"] + 5
    assert {name: one for name, one in grace.items() if one < needed[name]} == {}


def test_there_is_one_beat_at_a_time_and_a_web_process_always() -> None:
    beat, web = one("base", "Deployment", "beat")["spec"], one("base", "Deployment", "web")["spec"]
    assert (beat["replicas"], beat["strategy"]) == (1, {"type": "Recreate"})
    assert (web["replicas"], web["strategy"]["rollingUpdate"]["maxUnavailable"]) == (2, 0)
    assert one("base", "PodDisruptionBudget", "web")["spec"]["minAvailable"] == 1


def test_keda_counts_the_queue_under_the_key_that_it_has(redis: Redis) -> None:
    """KEDA asks Redis for the type of the key, and counts a set with SCARD. The words are those of its triggers
    since version 2.2."""
    spec = one("overlays/keda", "ScaledObject", "worker")["spec"]
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (2, 10)
    assert [trigger["type"] for trigger in spec["triggers"]] == ["redis", "postgresql"]
    backlog = spec["triggers"][0]["metadata"]["listName"]
    assert backlog == Keys(refresh_settings().key_prefix).queue
    execution_queue().mark([f"{number}:REPLICATION" for number in range(1, 8)])
    assert (redis.type(backlog), redis.scard(backlog)) == (b"set", 7)
    parameters = {"redis": ("password", "redis_password"), "postgresql": ("connection", "database_url")}
    for trigger in spec["triggers"]:
        assert trigger["authenticationRef"] == {"name": trigger["type"]}
        authentication = one("overlays/keda", "TriggerAuthentication", trigger["type"])["spec"]
        parameter, key = parameters[trigger["type"]]
        assert authentication == {
            "secretTargetRef": [{"parameter": parameter, "name": "harbor-refresh", "key": key}]
        }


@pytest.mark.usefixtures("database", "redis")
def test_keda_counts_the_jobs_that_wait_and_not_only_those_that_the_broker_holds() -> None:
    """Of long jobs it holds two for each process. Jobs of a paused queue need no pod."""
    spec = one("overlays/keda", "ScaledObject", "worker")["spec"]
    counting = spec["triggers"][1]["metadata"]

    def counted() -> int:
        with connection.cursor() as cursor:
            cursor.execute(counting["query"])
            return int(cursor.fetchone()[0])

    beats(slots=4, rate=0.01)
    recorded(*map(str, range(150)))
    sender.send([JOBS])
    assert Job.objects.filter(state=JobState.SENT).count() == 8
    assert counted() == 142
    recorded(*map(str, range(150, 400)))
    assert counted() == spec["maxReplicaCount"] * int(counting["targetQueryValue"])
    pause(JOBS, at_terminal())
    assert counted() == 0


def test_each_instance_of_the_hash_design_finds_its_number_in_its_name(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = one("overlays/hash", "StatefulSet", "worker")["spec"]
    (given,) = (each["data"] for each in built("overlays/hash") if each["kind"] == "ConfigMap")
    assert given["REFRESH_STRATEGY"] == "hash"
    assert int(given["CORE_INSTANCE_TOTAL"]) == worker["replicas"]
    assert (worker["serviceName"], worker["podManagementPolicy"]) == ("worker", "Parallel")
    settings.CORE_INSTANCE_TOTAL = worker["replicas"]
    for ordinal in range(worker["replicas"]):
        monkeypatch.setattr("socket.gethostname", lambda ordinal=ordinal: f"worker-{ordinal}")
        assert this_instance() == (ordinal, worker["replicas"])
