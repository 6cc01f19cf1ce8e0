#!/usr/bin/env bash
#SBATCH --job-name=vaswani_jax
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@120
# Train under SLURM: sbatch --nodes=8 --gpus-per-node=8 launch/slurm.sh --config=... \
#     --workdir=...
#
# One process a node, all of its devices. Two minutes before its time is over, or when it
# is preempted, the run gets SIGTERM, saves and exits with 143: the job is requeued and
# resumes.
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:-$(dirname "$0")/..}"
status=0
set -x
srun --kill-on-bad-exit=1 launch/one_host.sh "$@" --coordinator=auto || status=$?
if [ "$status" = 143 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
