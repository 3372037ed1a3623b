"""One module a picture: each says which experiment it draws, under which name, and how."""
