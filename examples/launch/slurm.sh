#!/bin/bash
# SLURM, with GPUs: sbatch examples/launch/slurm.sh, from the root of the repository, on a file system that all nodes share.
#
# srun starts a process for each GPU, and JAX finds the others by SLURM's variables; process i of a node takes GPU i of it. So each
# process must see all GPUs of its node: leave out --gpus-per-task, which would show it one.
#
# Edit: the numbers, the partition and account of your cluster, and where the checkpoints lie.
#SBATCH --job-name=multihost
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --requeue
##SBATCH --partition=gpu
##SBATCH --account=mine
#SBATCH --output=multihost-%j.txt
#SBATCH --open-mode=append
set -euo pipefail

CHECKPOINTS=${CHECKPOINTS:-$PWD/multihost}
PYTHON=${PYTHON:-.venv/bin/python}
mkdir -p "$CHECKPOINTS"

# If one process fails, the others would wait for it: end them all. --cpus-per-task has to be said again since SLURM 22.05.
# Then the job is queued again, three times at most, and goes on from its last checkpoint.
srun --kill-on-bad-exit=1 --cpus-per-task="${SLURM_CPUS_PER_TASK:-8}" "$PYTHON" -m examples.multihost --cluster \
    --checkpoints "$CHECKPOINTS/parts" --log "$CHECKPOINTS/log.jsonl" "$@" ||
    { [ "${SLURM_RESTART_COUNT:-0}" -lt 3 ] && scontrol requeue "$SLURM_JOB_ID"; }
