"""Each signal is connected to the function that writes its log line, by the name of that function."""

from types import ModuleType

import pytest
from django.dispatch import Signal

from harbor_refresh.executions.news import execution_log
from harbor_refresh.executions.news import signals as signals_of_executions
from harbor_refresh.tasks.news import pipeline_log
from harbor_refresh.tasks.news import signals as signals_of_tasks

#: Signals that write no log line on purpose.
WITHOUT_A_LINE: frozenset[str] = frozenset()
CASES = [
    (log, name, signal)
    for log, module in ((execution_log, signals_of_executions), (pipeline_log, signals_of_tasks))
    for name, signal in vars(module).items()
    if isinstance(signal, Signal) and name not in getattr(module, "__all__", ())
]


@pytest.mark.parametrize(("log", "name", "signal"), CASES, ids=[name for _, name, _ in CASES])
def test_a_signal_is_connected_to_its_log_line(log: ModuleType, name: str, signal: Signal) -> None:
    connected = f"{log.__name__}.on_{name}" in {receiver[0][0] for receiver in signal.receivers}
    assert connected != (name in WITHOUT_A_LINE)
