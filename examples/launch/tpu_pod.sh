#!/bin/bash
# A slice of Cloud TPUs that you made yourself: bash examples/launch/tpu_pod.sh setup ADDRESS, once, and then bash examples/launch/tpu_pod.sh
#
# The same command has to run on all hosts of the slice at the same time: --worker=all. Each host is one process with its own chips, four
# on most, and JAX finds the others by asking the machine's metadata server.
#
# ADDRESS is that of this repository, for git clone. Edit: the name and the zone of your slice, and a bucket that the hosts may write to.
set -euo pipefail

TPU=${TPU:-my-slice}
ZONE=${ZONE:-us-central2-b}
BUCKET=${BUCKET:-gs://my-bucket/multihost}

everywhere() {
    gcloud compute tpus tpu-vm ssh "$TPU" --zone="$ZONE" --worker=all --command="$1"
}

if [ "${1:-}" = setup ]; then
    # The machines' own Python is often too old, so uv fetches one. Orbax needs epath's part for buckets to save to gs://.
    everywhere "git clone $2 book && cd book && pip install --user uv && ~/.local/bin/uv venv --python 3.12 .venv &&
        ~/.local/bin/uv pip install 'jax[tpu]' -e '.[saving]' 'etils[epath,epath-gcs]'"
else
    # If one host fails, the others are ended by JAX after a while; started again, all go on from the last checkpoint.
    # The log lies on host 0. It all ends with this connection: for days, start it from a machine that stays on, in tmux.
    everywhere "cd book && .venv/bin/python -m examples.multihost --cluster --checkpoints $BUCKET --log log.jsonl $*"
fi
