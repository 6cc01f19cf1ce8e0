# Not built here: there was no Docker daemon.
#
#   docker build -t vaswani-jax .
#   docker build -t vaswani-jax --build-arg EXTRAS=demo,plot,cuda .    # NVIDIA GPUs
#   docker run --rm -v "$PWD/runs:/vaswani_jax/runs" vaswani-jax \
#       train demo --workdir=runs/demo
#
# To serve a model in one file on port 8000 of this machine alone (docs/guides/serve.md):
#
#   vaswani export runs/demo --format=bundle --output=served.safetensors
#   docker build -t vaswani-serve --build-arg EXTRAS=serve .
#   docker run --rm --stop-timeout=40 -p 127.0.0.1:8000:8000 \
#       -v "$PWD/served.safetensors:/models/served.safetensors:ro" vaswani-serve \
#       serve /models/served.safetensors --host=0.0.0.0 --hosts=127.0.0.1,localhost
#
# With CUDA, add `--gpus all` to `docker run`. launch/kubernetes.yaml uses this image, built
# with EXTRAS=demo,plot,cuda.
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

ENV PATH=/vaswani_jax/.venv/bin:$PATH
ENTRYPOINT ["vaswani"]
CMD ["--help"]
