"""Where packages are installed."""

from importlib.util import find_spec
from pathlib import Path


def folder_of(package: str) -> Path:
    """Return the folder of an installed package, without importing it."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    return Path(spec.origin).parent
