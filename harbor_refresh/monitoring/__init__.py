"""Monitoring: /metrics for Prometheus, /healthz and /readyz for load balancers and probes."""
