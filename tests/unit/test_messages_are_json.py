"""Nothing that comes by the broker, by Redis or over HTTP can run code: it is JSON, and nothing is unpickled."""

import ast

from harbor_refresh.celery import app
from tests.pages import ROOT

PACKAGES = ("executions", "tasks", "harbor_refresh", "settings")
#: What runs code that it reads.
DANGEROUS = {"pickle", "cPickle", "dill", "marshal", "shelve", "yaml"}


def test_only_json_is_accepted_and_nothing_is_unpickled() -> None:
    """Django's cache unpickles what it reads, so no module uses it."""
    assert list(app.conf.accept_content) == ["json"]
    assert app.conf.task_serializer == "json"
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                modules = [one.name for one in node.names] + [getattr(node, "module", None) or ""]
                assert not DANGEROUS & {one.split(".")[0] for one in modules}, path
                assert "django.core.cache" not in modules, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), path
