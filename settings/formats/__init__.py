"""How the admin writes dates and times: in one format, with the zone."""
