"""Mistakes in loss, optimizer and training step."""

from tests.benchmarks.mistakes.mistake import Mistake

TORCH = "tests/oracles/test_torch.py"
LOSS = "tests/training/test_loss.py"
STEP = "tests/training/test_step.py"

MISTAKES = (
    Mistake(
        "smoothing over the V - 1 others where over all was asked",
        "smoothed_cross_entropy",
        "$spread = $total_logit / V",
        "$spread = ($total_logit - correct_logit) / (V - 1)",
        f"{TORCH}::test_loss_and_every_gradient_are_torchs",
    ),
    Mistake(
        "padding is predicted, too",
        "smoothed_cross_entropy",
        "$target_out != $types.PAD_ID",
        "$target_out >= $types.PAD_ID",
        f"{TORCH}::test_loss_and_every_gradient_are_torchs",
    ),
    Mistake(
        "Adam's beta_2 is the usual 0.999",
        "adam",
        "b2=$settings.$optimizer.beta2",
        "b2=0.999",
        f"{TORCH}::test_twenty_updates_are_those_of_torchs_adam",
    ),
    Mistake(
        "Adam's epsilon is 1e-6",
        "adam",
        "eps=$settings.$optimizer.epsilon",
        "eps=1e-6",
        f"{TORCH}::test_twenty_updates_are_those_of_torchs_adam",
    ),
    Mistake(
        "the schedule counts from 0",
        "warmup_inverse_sqrt",
        "jnp.asarray($step, jnp.float32) + 1",
        "jnp.asarray($step, jnp.float32)",
        f"{TORCH}::test_twenty_updates_are_those_of_torchs_adam",
    ),
    Mistake(
        "the warm-up grows with warmup_steps^-1",
        "warmup_inverse_sqrt",
        "$step_num * warmup_steps**-1.5\n",
        "$step_num * warmup_steps**-1.0\n",
        "tests/training/test_optimizer.py",
    ),
    Mistake(
        "the doctest of the schedule is of another d_model",
        "warmup_inverse_sqrt",
        "warmup_inverse_sqrt(d_model=512",
        "warmup_inverse_sqrt(d_model=1024",
        "vaswani_jax/training/optimizer.py",
    ),
    Mistake(
        "devices add up their sums but not their gradients' parts",
        "step.train_step",
        "$gradients, $sums = parallel.sum_over_devices($parts)",
        "$gradients, $sums = $parts[0], parallel.sum_over_devices($parts[1])",
        f"{STEP}::test_three_updates_on_eight_devices_are_adam_in_numpy",
    ),
    Mistake(
        "the V - 1 others share between V",
        "smoothed_cross_entropy",
        "- $chosen) / (V - 1)",
        "- $chosen) / V",
        f"{LOSS}::test_each_form_of_smoothing_is_that_of_its_definition",
    ),
    Mistake(
        "the form without padding gives padding its part",
        "smoothed_cross_entropy",
        "- $chosen - $padding) / (V - 2)",
        "- $chosen) / (V - 1)",
        f"{LOSS}::test_each_form_of_smoothing_is_that_of_its_definition",
    ),
    Mistake(
        "perplexity of the smoothed loss",
        "per_token",
        "np.exp(np.asarray($sums.nll) / $tokens)",
        "np.exp(np.asarray($sums.loss) / $tokens)",
        f"{LOSS}::test_means_are_over_tokens_and_perplexity_is_that_of_the_plain_likelihood",
    ),
)
