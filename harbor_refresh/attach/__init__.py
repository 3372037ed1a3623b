"""`manage.py attach`: look whether this service can be attached to a Harbor, and put right what is wrong there.

Its checks are in the registry of checks (tasks/checks), with Shown.ATTACH.
"""
