# shellcheck shell=bash
# Sourced in the repository's root by the scripts for a GPU: $python, with what
# .wheels/ adds to it, and JAX on the GPU alone. $work is a directory for this run.
python=${PYTHON:-python3}
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}
if [ -d .wheels ]; then
    "$python" -m pip install --quiet --no-deps --no-index --target "$work/site" \
        .wheels/*.whl || echo "failed: not all of .wheels/ was installed"
    PYTHONPATH+=:$work/site
fi
export JAX_PLATFORMS=cuda
