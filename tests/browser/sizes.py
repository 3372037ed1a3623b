"""The windows in which pages are looked at."""

from playwright.sync_api import ViewportSize

DESKTOP = ViewportSize(width=1280, height=900)
PHONE = ViewportSize(width=390, height=844)
