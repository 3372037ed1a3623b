from django.db import models


class ReceivedMessage(models.Model):
    """The id of a signed message whose reports are in the database, so that the message is not taken twice.

    `at` is the timestamp that the message was signed with, or the time of its receipt if that is later. A message
    is accepted until five minutes after its timestamp; ten minutes after `at` its row is not needed any more.
    """

    id = models.CharField(primary_key=True, max_length=255)
    at = models.DateTimeField()

    class Meta:
        db_table = "execution_received_message"
        # forgetting: the oldest first, in batches
        indexes = (models.Index(fields=["at"], name="received_message_age"),)

    def __str__(self) -> str:
        return f"message {self.id}"
