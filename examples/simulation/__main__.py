from harbor_refresh.local.program import run

run("examples.simulation", "examples.simulation.command")
