"""Who may do what, and who did it: tokens, signatures, and the log of actions."""
