"""Section 5.3: Adam with the paper's schedule."""

import optax

from vaswani_jax.core import config
from vaswani_jax.training import schedule


def learning_rate(settings: config.Config) -> schedule.Schedule:
    """The learning rate of each update."""
    return schedule.warmup_inverse_sqrt(
        d_model=settings.model.d_model,
        warmup_steps=settings.optimizer.warmup_steps,
        scale=settings.optimizer.learning_rate_scale,
    )


def adam(settings: config.Config) -> optax.GradientTransformation:
    """Adam with beta_1, beta_2 and epsilon of section 5.3."""
    return optax.adam(
        learning_rate(settings),
        b1=settings.optimizer.beta1,
        b2=settings.optimizer.beta2,
        eps=settings.optimizer.epsilon,
    )
