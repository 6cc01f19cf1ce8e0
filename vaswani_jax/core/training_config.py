"""Declare the settings of training, sections 5.2 to 5.4: the optimizer and the run.

`core.config` has the other sections, and all of them together.
"""

import dataclasses

from vaswani_jax.core.settings import setting

# Names in training.loggers, each an extra of pyproject.toml.
LOGGERS = ("wandb", "mlflow", "trackio")


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Adam and its schedule, section 5.3, and what it changes."""

    beta1: float = setting(
        "Decay of Adam's first moment.", symbol="beta_1", at_least=0, below=1
    )
    beta2: float = setting(
        "Decay of Adam's second moment.", symbol="beta_2", at_least=0, below=1
    )
    epsilon: float = setting("Added to the root of Adam's second moment.", above=0)
    warmup_steps: int = setting(
        "Updates in which the learning rate rises, equation 3.",
        at_least=1,
        at_most=2**31 - 1,
    )
    learning_rate_scale: float = setting(
        "Factor of equation 3's learning rate; 1 in the paper.",
        above=0,
        changeable=True,
    )
    schedule: str = setting(
        "Learning rate after the warm-up: the paper's equation 3, or another one.",
        choices=("paper", "constant", "linear", "cosine", "inverse_sqrt"),
        changeable=True,
        legacy="paper",
    )
    learning_rate: float = setting(
        "Highest learning rate of the schedule; 0 for the paper's, which has its own.",
        at_least=0,
        changeable=True,
        legacy=0.0,
    )
    max_gradient_norm: float = setting(
        "Norm that a larger gradient is scaled down to; 0 for no limit.",
        at_least=0,
        changeable=True,
        legacy=0.0,
    )
    weight_decay: float = setting(
        "AdamW's decay of all parameters but biases and scales; 0 for Adam.",
        at_least=0,
        legacy=0.0,
    )
    frozen: str = setting(
        "Parameters not to train: patterns of paths, such as encoder/*,embedding/*.",
        values="patterns of paths, separated by commas; empty for none",
        legacy="",
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """The run, sections 5.2 to 5.4."""

    num_steps: int = setting(
        "Updates of the whole run.",
        at_least=1,
        at_most=2**31 - 1,
        changeable=True,
    )
    accumulate_steps: str = setting(
        "Parts that a batch is computed in; auto doubles them until memory suffices.",
        values="auto or a positive number",
        changeable=True,
        incidental=True,
    )
    shard_optimizer: bool = setting(
        "Let each device keep and update its part of Adam's moments alone.",
        changeable=True,
        incidental=True,
        legacy=False,
    )
    label_smoothing: float = setting(
        "Probability taken from the correct subword.",
        symbol="eps_ls",
        at_least=0,
        below=1,
    )
    label_smoothing_form: str = setting(
        "Subwords that share smoothing: all, incorrect ones, or these but padding.",
        choices=("uniform", "others", "no_pad"),
        legacy="uniform",
    )
    r_drop: float = setting(
        "Weight alpha of R-Drop's divergence; 0, as in the paper, for none.",
        at_least=0,
        legacy=0.0,
        needs=(
            "model.dropout_rate",
            "model.attention_dropout_rate",
            "model.relu_dropout_rate",
        ),
    )
    log_every_steps: int = setting(
        "Updates between lines of the log.",
        at_least=1,
        changeable=True,
        incidental=True,
    )
    loggers: str = setting(
        "Where metrics go beside the workdir (wandb,trackio); empty: nowhere else.",
        values=f"names, separated by commas ({', '.join(LOGGERS)}), or empty",
        changeable=True,
        legacy="",
        incidental=True,
    )
    evaluate_every_steps: int = setting(
        "Updates between evaluations on the validation set.",
        at_least=1,
        changeable=True,
        incidental=True,
    )
    checkpoint_every_steps: int = setting(
        "Updates between checkpoints.", at_least=1, changeable=True
    )
    keep_checkpoints: int = setting(
        "Number of checkpoints to keep.", at_least=1, changeable=True, incidental=True
    )
    ema_decay: float = setting(
        "Decay of the parameters' moving average, which is then decoded from; 0: none.",
        at_least=0,
        below=1,
        changeable=True,
        legacy=0.0,
    )
    average_checkpoints: int = setting(
        "Number of last checkpoints to average: 5 (base) or 20 (big), section 6.1.",
        at_least=1,
        changeable=True,
    )
    best_metric: str = setting(
        "Validation metric that chooses the best checkpoint; f1 is that of trees.",
        choices=("bleu", "f1", "loss"),
        changeable=True,
        legacy="bleu",
    )
    patience: int = setting(
        "Evaluations without improvement that end the run; 0 for no limit.",
        at_least=0,
        changeable=True,
        legacy=0,
    )
    max_skipped_batches: int = setting(
        "Batches to skip, for a loss that is not finite or spikes, before failing.",
        at_least=0,
        changeable=True,
        legacy=0,
        incidental=True,
    )
    max_loss_rise: float = setting(
        "Rise of the loss that counts as a spike, in nats per token; 0 for no limit.",
        at_least=0,
        changeable=True,
        legacy=0.0,
    )


def names_of_loggers(training: TrainingConfig) -> list[str]:
    """Return the names in `training.loggers`."""
    return [name.strip() for name in training.loggers.split(",") if name.strip()]
