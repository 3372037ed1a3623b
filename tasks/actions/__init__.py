"""Work on actions: verbs for many executions, in the background or in a terminal."""
