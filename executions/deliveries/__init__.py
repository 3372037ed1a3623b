"""Being told: status changes are delivered to webhooks and to handlers in Python.

    subscriptions  make, change, delete and test subscriptions, and replace their secrets
    deliverer      writes the deliveries of status changes, and does one run of all this for webhooks
    claims         claim due deliveries and record their results
    changes        read what is told of a change; messages writes it as a signed request
    sender         sends requests, hundreds at once, over the network that requests and addresses guard
    answers        judge what a receiver answered
    dead_letters   sends dead deliveries again
    handler_runs   runs the handlers of executions/news/handlers.py

It needs PostgreSQL alone. `deliver` and `run_handlers` of tasks/celery_tasks.py start it.
"""
