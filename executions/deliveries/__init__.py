"""Being told: status changes are delivered to webhooks and to handlers in Python.

    outbox         writes the deliveries of status changes
    subscriptions  make, change, delete and test subscriptions; rotation replaces their secrets
    dead_letters   sends dead deliveries again
    claims         claim due deliveries and record their results
    changes        read what is told of a change; messages writes it as a signed request
    sender         sends requests, hundreds at once, over the network that network and addresses guard
    answers        judge what a receiver answered
    deliverer      one run that does all this for webhooks
    handler_runs   runs the handlers of executions/news/handlers.py

It needs PostgreSQL alone. `deliver` and `run_handlers` of tasks/celery_tasks.py start it.
"""
