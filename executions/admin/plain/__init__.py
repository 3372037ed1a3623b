"""The screens on the pages of Django's own admin, for projects without django-unfold."""
