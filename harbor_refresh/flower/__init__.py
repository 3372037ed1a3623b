"""Flower as a part of the service: celery -A harbor_refresh flower --conf=harbor_refresh/flower/flowerconfig.py

`flowerconfig` sets Flower's options, `login` lets in the users of the admin, `pages` adds what its pages lack.
"""
