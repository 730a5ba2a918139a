"""Django's settings. What an installation may change is a row of gpuadmin.env."""

import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict

from gpuadmin import env

BASE_DIR = Path(__file__).resolve().parent.parent

# --- what the apps read
KUBECONFIG = env.KUBECONFIG.read()
KUBE_CONTEXT = env.KUBE_CONTEXT.read()
LOOPBACK_CLUSTERS = env.LOOPBACK_CLUSTERS.read()
LOOPBACK_AGENTS = env.LOOPBACK_AGENTS.read()
RELEASE_LIMIT_SECONDS = env.RELEASE_LIMIT_SECONDS.read()
CLUSTER_NAME = env.CLUSTER_NAME.read()
NAMESPACE = env.NAMESPACE.read()
PLUGIN_NAMESPACE = env.PLUGIN_NAMESPACE.read()
AGENT_DAEMONSET = env.AGENT_DAEMONSET.read()
AGENT_SECRET = env.AGENT_SECRET.read()
AGENT_TIMEOUT_SECONDS = env.AGENT_TIMEOUT_SECONDS.read()
POLL_SECONDS = env.POLL_SECONDS.read()
OPERATION_LEASE_SECONDS = env.OPERATION_LEASE_SECONDS.read()
RAW_HOURS = env.RAW_HOURS.read()
BUSY_PERCENT = env.BUSY_PERCENT.read()
IDLE_PERCENT = env.IDLE_PERCENT.read()
IDLE_AFTER_SECONDS = env.IDLE_AFTER_SECONDS.read()
MIG_STUCK_SECONDS = env.MIG_STUCK_SECONDS.read()
TOLERATED_TAINTS = frozenset(env.TOLERATED_TAINTS.read())

# --- Django
# Commands such as makemigrations need a key but sign nothing; serving processes refuse to start
# without a lasting one (env.refuse_to_serve).
SECRET_KEY = env.SECRET_KEY.read() or secrets.token_urlsafe(48)
DEBUG = False
ALLOWED_HOSTS = list(env.ALLOWED_HOSTS.read())
ROOT_URLCONF = "gpuadmin.urls"
WSGI_APPLICATION = "gpuadmin.wsgi.application"
APPEND_SLASH = False
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "gpuadmin.apps.ProjectConfig",
    "gpuadmin.accounts",
    "gpuadmin.fleet",
    "gpuadmin.workloads",
    "gpuadmin.ledger",
    "gpuadmin.collect",
    "gpuadmin.operations",
    "gpuadmin.api",
    "gpuadmin.web",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "axes",
    "csp",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "gpuadmin.addresses.refuse_nul",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "gpuadmin.web.context.theme",
            ],
        },
    }
]
STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / ".static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "gpuadmin.assets.NamedFiles",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "gpuadmin.assets.Hashed"},
}


def _database(url: str) -> dict[str, Any]:
    """Django's form of a libpq address; what Django has no name for goes to libpq as it is."""
    conninfo = conninfo_to_dict(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": conninfo.pop("dbname"),
        "USER": conninfo.pop("user", ""),
        "PASSWORD": conninfo.pop("password", ""),
        "HOST": conninfo.pop("host", ""),
        "PORT": conninfo.pop("port", ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": 5, "application_name": "gpuadmin"} | conninfo,
    }


DATABASES = {"default": _database(env.DATABASE_URL.read())}

# --- who may come in
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/sign-in"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/sign-in"
TRUSTED_PROXIES = env.TRUSTED_PROXIES.read()
# One account is locked from one address, and one address from every account after more failures:
# nobody tries passwords without limit, and no stranger locks out an administrator.
AXES_HANDLER = "gpuadmin.accounts.signins.Limits"
AXES_CLIENT_IP_CALLABLE = "gpuadmin.accounts.signins.counted_address"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
SIGN_IN_FAILURES_PER_ADDRESS = 30
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True  # the audit has it
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
AXES_LOCKOUT_CALLABLE = "gpuadmin.web.views.session.locked"

# --- what a browser is told
HTTPS = env.HTTPS.read()
SESSION_ENGINE = "gpuadmin.accounts.sessions"
SESSION_COOKIE_AGE = env.SESSION_HOURS.read() * 3600  # from the sign-in on, used or not
SESSION_IDLE_SECONDS = env.SESSION_IDLE_MINUTES.read() * 60
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
CSRF_TRUSTED_ORIGINS = list(env.TRUSTED_ORIGINS.read())
if HTTPS:
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "object-src": ["'none'"],
    }
}

# --- REST
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "gpuadmin.api.auth.BearerToken",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["gpuadmin.api.permissions.MayView"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_PAGINATION_CLASS": "gpuadmin.api.paging.Pages",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "gpuadmin.api.problems.handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
KNOX_TOKEN_MODEL = "accounts.AccessToken"  # noqa: S105  a model's name
REST_KNOX = {
    "AUTH_HEADER_PREFIX": "Bearer",
    "TOKEN_TTL": None,  # each token is given its own expiry, or none
    "TOKEN_PREFIX": "gpa_",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "gpuadmin",
    "DESCRIPTION": "What a cluster's GPUs are, who holds them, and the changes an operator makes.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "OAS_VERSION": "3.1.0",
    "ENUM_NAME_OVERRIDES": {
        "OperationState": "gpuadmin.operations.models.State",
        "GpuState": "gpuadmin.fleet.models.Gpu.State",
        "Role": "gpuadmin.api.v1.accounts_out.ROLES",
    },
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "gpuadmin.api.schema.complete",
    ],
    "SERVE_PERMISSIONS": ["gpuadmin.api.permissions.MayView"],
}

# --- tasks
# PostgreSQL is the truth of every job; a message is only a nudge. So nothing is lost when a
# message is, results are not kept, and a message is dropped once the next one is due.
_REDIS_URL = env.REDIS_URL.read()
CELERY_BROKER_URL = _REDIS_URL.replace("unix://", "redis+socket://", 1)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # Longer than any task may run, so that no second worker gets a message of the first.
    "visibility_timeout": 900,
    "socket_timeout": 2,
    "socket_connect_timeout": 2,
}
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = 300
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0.2}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {
    "gpuadmin.collect.tasks.*": {"queue": "poll"},
    "gpuadmin.operations.tasks.*": {"queue": "operations"},
}
CELERY_BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    "read every agent": {
        "task": "gpuadmin.collect.tasks.poll",
        "schedule": timedelta(seconds=POLL_SECONDS),
        "options": {"expires": POLL_SECONDS},
    },
    "ask what our account may do": {
        "task": "gpuadmin.collect.tasks.rights",
        "schedule": timedelta(seconds=60),
        "options": {"expires": 60},
    },
    "take up operations that lost their worker": {
        "task": "gpuadmin.operations.tasks.sweep",
        "schedule": timedelta(seconds=30),
        "options": {"expires": 30},
    },
    "forget sessions that are over": {
        "task": "gpuadmin.accounts.tasks.forget_sessions",
        "schedule": timedelta(hours=1),
        "options": {"expires": 3600},
    },
    "make and drop daily partitions": {
        "task": "gpuadmin.ledger.tasks.partitions",
        "schedule": timedelta(hours=1),
        "options": {"expires": 3600},
    },
}

# --- logs: to standard error, one line a record
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "gpuadmin.logs.OneLineFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": env.LOG_LEVEL.read()},
    "loggers": {
        "django": {"handlers": [], "level": "INFO", "propagate": True},
        # A line for every beat says nothing that the heartbeat rows do not say better.
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "celery.beat": {"level": "WARNING"},
    },
}
