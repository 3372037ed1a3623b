"""`from harbor_refresh import …`: the public names, loaded when they are asked for."""

import ast
import subprocess
import sys

import harbor_refresh
from tests.distribution.metadata import ROOT


def of_type_checkers() -> dict[str, str]:
    """The public names, with their modules, as a type checker sees them."""
    tree = ast.parse((ROOT / "harbor_refresh/__init__.py").read_text(encoding="utf-8"))
    (block,) = (one for one in tree.body if isinstance(one, ast.If) and isinstance(one.test, ast.Name))
    imports = [one for one in block.body if isinstance(one, ast.ImportFrom)]
    return {alias.name: str(one.module) for one in imports for alias in one.names}


def test_types_and_values_come_from_the_same_modules() -> None:
    at_run_time = {name: module for module, names in harbor_refresh._MODULES.items() for name in names.split()}
    assert at_run_time == of_type_checkers()
    assert list(at_run_time) == harbor_refresh.__all__
    assert set(harbor_refresh.__all__) <= set(dir(harbor_refresh))
    for name, module in at_run_time.items():
        assert getattr(harbor_refresh, name) is getattr(sys.modules[module], name)


def test_importing_the_package_loads_none_of_its_parts() -> None:
    program = "import sys, harbor_refresh; print({'django', 'celery', 'redis', 'tasks'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
