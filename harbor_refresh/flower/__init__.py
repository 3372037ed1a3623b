"""Flower as a part of the service: celery -A harbor_refresh flower --conf=harbor_refresh/flower/flowerconfig.py"""
