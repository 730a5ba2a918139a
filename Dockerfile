# Two images:
#   docker build --target server --tag gpuadmin-server:0.1.0 .
#   docker build --target agent --tag gpuadmin-agent:0.1.0 .
FROM python:3.11-slim-bookworm AS python
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /app

FROM python AS server-packages
COPY requirements-server.txt ./
RUN python -m venv /opt/venv \
    && pip install --no-cache-dir --require-hashes --requirement requirements-server.txt

FROM python AS agent-packages
COPY requirements-agent.txt ./
RUN python -m venv /opt/venv \
    && pip install --no-cache-dir --require-hashes --requirement requirements-agent.txt

# As root: the kubelet's socket is root's. deploy/agent takes every capability away.
FROM python AS agent
COPY --from=agent-packages /opt/venv /opt/venv
COPY agent agent
RUN python -m compileall -q agent
EXPOSE 9477
CMD ["python", "-m", "agent"]

FROM python AS server
COPY --from=server-packages /opt/venv /opt/venv
COPY manage.py ./
COPY agent/__init__.py agent/
COPY agent/contract agent/contract
COPY gpuadmin gpuadmin
COPY static static
COPY templates templates
RUN python manage.py collectstatic --noinput --verbosity 0 \
    && python -m compileall -q agent gpuadmin
USER 65532:65532
EXPOSE 8000
CMD ["gunicorn", "gpuadmin.wsgi", "--bind=0.0.0.0:8000", "--worker-class=gthread", "--workers=2", "--threads=4", "--no-control-socket", "--worker-tmp-dir=/tmp", "--graceful-timeout=20"]
