"""The deliverer of notifications in a worker process, and what wakes it."""
