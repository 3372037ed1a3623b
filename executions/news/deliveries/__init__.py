"""Being told: status changes are delivered to webhooks and to handlers in Python.

    subscriptions  make, change, delete and test subscriptions, and replace their secrets
    deliverer      writes the deliveries of status changes, and runs webhooks and handlers
    claims         claims due deliveries, reads what they tell, records results, gives up, pauses a webhook that
                   fails, and sends dead letters again
    sender         sends the signed requests of messages, hundreds at once, to the hosts that addresses allows
    answers        judges what a receiver answered, and when it is tried again

It needs PostgreSQL alone. `deliver` and `run_handlers` of tasks/celery_tasks.py start it.
"""
