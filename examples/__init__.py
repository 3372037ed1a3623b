"""Programs that use Harbor Refresh from end to end, and that `make up` runs. `mirror` is meant to be copied."""
