"""Jobs in the tests of a project, without Redis: eager mode, a worker in the process of the test, and jobs that
fail when a test says so.

For pytest there are fixtures (`pytest_plugins = ["harbor_refresh.testing.fixtures"]`); the same for any other
runner are these functions, each a context. See docs/howto/testing.md.
"""

from harbor_refresh.testing.failures import fail_job
from harbor_refresh.testing.worker import eager, worker

__all__ = ["eager", "fail_job", "worker"]
