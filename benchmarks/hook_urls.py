"""The URLs of the product, and a bare view beside them: the least that a Django view with one UPDATE costs."""

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from harbor_refresh.web.urls import urlpatterns as of_the_product


@csrf_exempt
def bare(request: HttpRequest, task_id: int) -> HttpResponse:
    """Change the row as a report does, without reading the body and without any rule."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE task SET status = 'Running', status_code = 2, update_time = now() WHERE id = %s", [task_id]
        )
    return HttpResponse()


urlpatterns = [path("bare/<int:task_id>", bare), *of_the_product]
