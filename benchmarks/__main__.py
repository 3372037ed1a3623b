from harbor_refresh.local.program import run

run("benchmarks", "benchmarks.command", has_own_servers=True)
