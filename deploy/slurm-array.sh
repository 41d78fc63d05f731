#!/usr/bin/env bash
# Workers on a Slurm cluster: an array of jobs, one worker and one GPU each. A task leaves by itself when there was
# nothing to do for a while; a task that is cancelled, preempted or out of time says goodbye first.
#
#   TOGL_JOIN=HOST:PORT TOGL_TOKEN_FILE=~/togl.token sbatch --array=0-7 deploy/slurm-array.sh
#
# Without GPUs: sbatch --gres=none --cpus-per-task=8 ...; then the worker has one slot a CPU of the task.
#
# TOGL_JOIN         where the coordinator listens, as seen from the compute nodes
# TOGL_TOKEN_FILE   file with the worker token, readable by you only
# TOGL_BIN          folder of togl-worker, if it is not on PATH
# TOGL_STATE        where results wait until they are acknowledged; the default is your own state directory
# TOGL_DATA         where data sets are, if the sweep needs files
# TOGL_IDLE_EXIT    seconds without work after which a task ends; the default is 300
#SBATCH --job-name=togl
#SBATCH --array=0-3
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=2
#SBATCH --mem=8G
#SBATCH --time=12:00:00
#SBATCH --signal=B:TERM@60
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=togl-%A_%a.log
set -euo pipefail

: "${TOGL_JOIN:?set TOGL_JOIN=HOST:PORT}"
: "${TOGL_TOKEN_FILE:?set TOGL_TOKEN_FILE to a file with the worker token}"
PATH=${TOGL_BIN:+$TOGL_BIN:}$PATH

# One folder a task: a requeued task finds the results that its predecessor could not deliver.
state=${TOGL_STATE:-${XDG_STATE_HOME:-$HOME/.local/state}/togl}/slurm/${SLURM_ARRAY_TASK_ID:-0}
mkdir -p "$state"

options=(--token-file "$TOGL_TOKEN_FILE" --state "$state" --idle-exit "${TOGL_IDLE_EXIT:-300}")
if [ -z "${CUDA_VISIBLE_DEVICES-}" ]; then
    options+=(--device cpu --slots "${SLURM_CPUS_PER_TASK:-1}")
fi

worker=
# Slurm signals this script, not the worker: pass it on.
# shellcheck disable=SC2317 # the trap calls it
pass_on() { if [ -n "$worker" ]; then kill -TERM "$worker" 2>/dev/null || true; fi; }
trap pass_on TERM INT

togl-worker join "$TOGL_JOIN" "${options[@]}" </dev/null &
worker=$!

# A signal ends `wait` early; wait again until the worker has really gone.
status=0
wait "$worker" || status=$?
while kill -0 "$worker" 2>/dev/null; do
    status=0
    wait "$worker" || status=$?
done
exit "$status"
