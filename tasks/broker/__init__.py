"""What is asked of the broker itself, which is a Redis or a RabbitMQ.

| question | of Redis | of RabbitMQ |
| --- | --- | --- |
| how to connect (`connecting.py`) | `redis_address.py` | `connecting.py` |
| how many messages wait (`pooled.py`) | LLEN | a passive declaration of the queue |

`rabbitmq.py` has what is sent to RabbitMQ. Outside of this package three places ask which of the two it is: the
looks of pages (`tasks/overview/of_broker.py`), the check of the strategy, and the doctor. Nothing is imported
here, because the settings import `connecting.py`.
"""
