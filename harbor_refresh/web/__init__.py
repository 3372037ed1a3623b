"""What the web process serves: the API, /metrics for Prometheus, and /healthz and /readyz for probes."""
