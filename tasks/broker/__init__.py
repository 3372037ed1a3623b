"""What is asked of the broker itself, which is a Redis or a RabbitMQ: how to connect, and how many messages wait.

Outside of this package three places ask which of the two it is: the looks of pages
(`tasks/overview/of_broker.py`), the check of the strategy, and the doctor. Nothing is imported here, because the
settings import `connecting.py`.
"""
