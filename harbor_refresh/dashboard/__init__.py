"""The dashboard: the first page of the admin, with what runs, what is wrong, and how it healed. It opens while
Redis hangs, and all that it reads is bounded: `latest` reads it once for all open pages, which `views` answers."""
