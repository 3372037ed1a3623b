"""`python -m harbor_refresh.api_docs`: renew docs/api.md from the API's description (`api_page.Command`)."""

from harbor_refresh.local.program import run

run("harbor_refresh.api_docs", "harbor_refresh.api_page")
