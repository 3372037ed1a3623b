"""What `kubectl apply -k` would send: the overlays, built by the kustomize inside kubectl."""

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.dockerfile import ROOT
from tests.terminal import ran

KUBERNETES = ROOT / "deploy/kubernetes"
OVERLAYS = ("base", "overlays/keda", "overlays/hash")
MISSING = (
    "The overlays of deploy/kubernetes are built by `kubectl kustomize`, and no `kubectl` of 1.28 or newer is on "
    "PATH. It is one file: https://kubernetes.io/docs/tasks/tools/"
)


def kubectl(*words: str, folder: Path = ROOT) -> str:
    """Run kubectl, which asks no cluster. Without it the test fails, because nothing else can prove the same."""
    if not shutil.which("kubectl"):
        pytest.fail(MISSING)
    done = ran(["kubectl", *words], folder=folder)
    if done.returncode:
        pytest.fail(f"kubectl {' '.join(words)}: {done.stderr}\nIs it 1.28 or newer?")
    return done.stdout


@cache
def _text(overlay: str) -> str:
    return kubectl("kustomize", str(KUBERNETES / overlay))


def built(overlay: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(_text(overlay)))


def pods(overlay: str) -> dict[str, dict[str, Any]]:
    """The pod templates, by the names of their workloads."""
    return {
        one["metadata"]["name"]: one["spec"]["template"]
        for one in built(overlay)
        if "template" in one.get("spec", {})
    }


def one(overlay: str, kind: str, name: str) -> dict[str, Any]:
    (found,) = (
        each for each in built(overlay) if (each["kind"], each["metadata"]["name"].split("-")[0]) == (kind, name)
    )
    return found
