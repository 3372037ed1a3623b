"""Who may do what, and who did it: tokens, and the log of actions."""
