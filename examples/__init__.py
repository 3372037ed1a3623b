"""Small programs that use Harbor Refresh from end to end. Run by `make up`, and meant to be copied."""
