# shellcheck shell=bash
# Sourced in the repository's root by the scripts for a GPU: $python, with what
# .wheels/ adds to it, and JAX on the GPU alone. $work is a directory for this run.
python=${PYTHON:-python3}
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
if [ -d .wheels ]; then
    # One by one: pip installs none of several if one does not fit this Python.
    for wheel in .wheels/*.whl; do
        "$python" -m pip install --quiet --no-deps --no-index --target "$work/site" \
            "$wheel" || echo "failed: $wheel was not installed"
    done
    PYTHONPATH+=:$work/site
fi
export JAX_PLATFORMS=cuda
