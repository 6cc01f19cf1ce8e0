#!/usr/bin/env bash
#SBATCH --job-name=vaswani_jax
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@120
# Train under SLURM: sbatch --nodes=8 --gpus-per-node=8 --cpus-per-task=64 \
#     launch/slurm.sh --config=... --workdir=...
#
# Name the cores of a node, for which SLURM's default is one. One process a node, all of its devices. Two minutes before its time is over, or when it
# is preempted, the run gets SIGTERM, saves and exits with 143: the job is requeued and
# resumes.
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:-$(dirname "$0")/..}"
# Under SLURM, JAX gives each process one GPU, that of its local rank. Here a node has one
# process, which needs all of its GPUs.
if [ "${SLURM_NTASKS_PER_NODE:-1}" = 1 ] && [ -n "${SLURM_GPUS_ON_NODE:-}" ]; then
    all_gpus=$(seq -s, 0 $((SLURM_GPUS_ON_NODE - 1)))
    export JAX_LOCAL_DEVICE_IDS="${JAX_LOCAL_DEVICE_IDS:-$all_gpus}"
fi
# Newer versions of srun do not inherit the number.
if [ -n "${SLURM_CPUS_PER_TASK:-}" ]; then
    export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"
fi
status=0
set -x
srun --kill-on-bad-exit=1 launch/one_host.sh "$@" --coordinator=auto || status=$?
if [ "$status" = 143 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
