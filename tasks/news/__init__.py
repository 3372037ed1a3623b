"""Who hears what the queue and the jobs do: signals, the log lines and the counts that follow from them."""
