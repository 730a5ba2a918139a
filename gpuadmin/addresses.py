"""What no address may hold."""

from collections.abc import Callable

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, JsonResponse

from gpuadmin.api.problems import CONTENT_TYPE, body_of

SENTENCE = "The address has a NUL character, which nothing here has in its name."


def refuse_nul(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: 400 for a NUL in path or query. PostgreSQL stores none, so no lookup finds it."""

    def handle(request: HttpRequest) -> HttpResponse:
        query = request.META.get("QUERY_STRING", "")
        if not ("\0" in request.path or "\0" in query or "%00" in query):
            return get_response(request)
        if request.path.startswith("/api/"):
            return JsonResponse(body_of(400, SENTENCE), status=400, content_type=CONTENT_TYPE)
        raise BadRequest(SENTENCE)

    return handle
