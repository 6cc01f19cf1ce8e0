# Not built here: there was no Docker daemon.
#
#   docker build -t vaswani-jax .
#   docker build -t vaswani-jax --build-arg EXTRAS=demo,plot,cuda .    # NVIDIA GPUs
#   docker run --rm -v "$PWD/runs:/vaswani_jax/runs" \
#       -v vaswani-cache:/cache vaswani-jax \
#       train demo --workdir=runs/demo
#
# The volume vaswani-cache keeps compiled programs for the next container.
# docs/guides/serve.md has the commands for a server. With CUDA, add `--gpus all` to
# `docker run`. launch/kubernetes.yaml uses this image, built with EXTRAS=demo,plot,cuda.
ARG PYTHON=3.13
FROM python:${PYTHON}-slim

ARG EXTRAS=demo,plot
WORKDIR /vaswani_jax
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY configs configs
COPY launch launch
COPY vaswani_jax vaswani_jax
RUN python -m venv .venv \
    && .venv/bin/pip install --no-cache-dir --constraint constraints.txt --editable ".[${EXTRAS}]"

ENV PATH=/vaswani_jax/.venv/bin:$PATH VASWANI_JAX_CACHE=/cache
ENTRYPOINT ["vaswani"]
CMD ["--help"]
