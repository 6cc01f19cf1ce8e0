"""Refuse processes that would not train the same run in the same workdir."""

import contextlib
from typing import Any

import numpy as np

from vaswani_jax.checkpoints import run_record, store
from vaswani_jax.core import config, processes
from vaswani_jax.training.resume import Run


def check_processes_agree(run: Run, initial_params: Any = None) -> None:
    """Refuse processes that would train another run than process 0.

    Args:
        run: The run.
        initial_params: Parameters of a new run, which each process has read for itself;
            None if they are random.

    Raises:
        ValueError: Their settings, vocabularies, texts, tokenisers or parameters
            differ; raised in every process. Paths may differ, as a text may lie
            elsewhere on each host.
    """
    if processes.num_processes() == 1:
        return
    best_is_by_bleu = run.settings.training.best_metric == "bleu"
    parts = {
        "settings": repr(config.shared_values(run.settings)),
        "vocabulary": run.vocabulary.fingerprint,
        "training text": run.training_text,
        "validation text": run.valid_text,
        # Packages choose it. Processes with different scores stop at different steps.
        "BLEU's tokeniser": run.tokenizer if best_is_by_bleu else "",
        "the parameters of --init_from": ""
        if initial_params is None
        else store.digest(initial_params),
    }
    processes.refuse_differences(parts)


def check_workdir_is_shared(run: Run) -> None:
    """Refuse processes whose workdir is not that of process 0.

    Call it when process 0 has recorded the start.

    Raises:
        ValueError: A process sees another record; raised in every process.
    """
    if processes.num_processes() == 1:
        return
    digest, read_error = -1, None
    try:
        if not processes.is_main_process():
            with contextlib.suppress(OSError):
                # NFS may remember that there was no such directory; this asks it anew.
                run.workdir.path.mkdir(parents=True, exist_ok=True)
            run.workdir.pull(is_follower=True)
        digest = processes.digest(run_record.newest_start(run.workdir.path))
    except (OSError, ValueError) as error:
        read_error = error  # The others must not wait for this process.
    digests = processes.gather_from_all(np.array(digest, np.int32))
    if read_error is not None:
        raise read_error
    if (digests != digests[0]).any():
        numbers = np.flatnonzero(digests != digests[0]).tolist()
        raise ValueError(
            f"processes {numbers} see another --workdir={run.workdir.path} than "
            "process 0: all must see the same files, on a shared file system or in an "
            "object store"
        )
