"""Makes the admin account, as a program of its own because it needs Django's settings.

Reads a password from the environment variable NEW_ADMIN_PASSWORD. Its last line is `created`, or
`kept` when there is an account of that name already, whose password it leaves alone.
"""

import os
import sys

USERNAME = "admin"


def main() -> None:
    import django

    django.setup()
    from django.contrib.auth import get_user_model

    users = get_user_model()._default_manager
    if users.filter(username=USERNAME).exists():
        sys.stdout.write("kept\n")
    else:
        users.create_superuser(USERNAME, password=os.environ["NEW_ADMIN_PASSWORD"])
        sys.stdout.write("created\n")


if __name__ == "__main__":
    main()
