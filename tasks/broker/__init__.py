"""What is asked of the broker itself, which is a Redis or a RabbitMQ: how to connect, and how many messages wait.

Outside of this package, the check of the strategy and the doctor ask which of the two it is. Nothing is imported
here, because the settings import `connecting.py`.
"""
