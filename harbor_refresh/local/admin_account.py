"""Make the admin account, in a separate program, because it needs Django's settings.

Reads a password from the environment variable NEW_ADMIN_PASSWORD. The last line of its output is `created`, or
`kept` if there is an account of that name already, whose password does not change.
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
