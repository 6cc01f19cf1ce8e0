"""torch's nn.Transformer with our weights: an implementation that we did not write.

`pip install -c constraints.txt -e '.[oracles]'` installs it; .ci/run does.
"""

import importlib.util
import math
from typing import Any

import flax.traverse_util
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import config, parallel, types
from vaswani_jax.model import transformer
from vaswani_jax.training import loss, optimizer, step

# Its import takes seconds, and waits for the tests that use it.
if importlib.util.find_spec("torch") is None:
    pytest.skip(
        "torch is not installed: pip install -e '.[oracles]'", allow_module_level=True
    )

V, B, S, T = 29, 5, 9, 8
SIZES = {
    "model.num_encoder_layers": 3,
    "model.num_decoder_layers": 2,
    "model.d_model": 24,
    "model.d_ff": 40,
    "model.num_heads": 4,
    "model.d_k": 6,
    "model.d_v": 6,
}


def make_network(model: config.ModelConfig) -> Any:
    """Return a post-norm nn.Transformer, without last norms: the paper has none."""
    import torch

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(V, model.d_model)
            self.core = torch.nn.Transformer(
                model.d_model,
                model.num_heads,
                model.encoder_layers,
                model.decoder_layers,
                model.d_ff,
                dropout=0.0,
                batch_first=True,
                layer_norm_eps=1e-6,
            )
            self.core.encoder.norm = self.core.decoder.norm = None
            self.scale = math.sqrt(model.d_model)
            # Section 3.5, by torch.
            rates = 10000 ** (-torch.arange(0, model.d_model, 2) / model.d_model)
            angles = torch.arange(64)[:, None] * rates
            both = torch.stack([angles.sin(), angles.cos()], dim=-1)
            self.positions = both.reshape(64, model.d_model)

        def embed(self, tokens: Any) -> Any:
            positions = self.positions[: tokens.shape[1]]
            return self.embedding(tokens) * self.scale + positions

        def encode(self, source: Any) -> Any:
            return self.core.encoder(
                self.embed(source), src_key_padding_mask=source == types.PAD_ID
            )

        def forward(self, source: Any, target_in: Any) -> Any:
            length = target_in.shape[1]
            later = torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)
            hidden = self.core.decoder(
                self.embed(target_in),
                self.encode(source),
                tgt_mask=later,
                tgt_key_padding_mask=target_in == types.PAD_ID,
                memory_key_padding_mask=source == types.PAD_ID,
            )
            return hidden @ self.embedding.weight.T

    return Network()


def torch_names(path: str) -> str:
    """The parameter of torch that one of ours is (a part of)."""
    words = {
        "self_attention": "self_attn",
        "memory_attention": "multihead_attn",
        "self_attention_residual": "norm1",
    }
    stack, *parts = path.split("/")
    if stack == "embedding":
        return "embedding.weight"
    last = "norm3" if stack == "decoder" else "norm2"
    words |= {"memory_attention_residual": "norm2", "feed_forward_residual": last}
    layer, block, *names = parts
    prefix = f"core.{stack}.layers.{layer.removeprefix('layers_')}"
    kind = "bias" if names[-1] == "bias" else "weight"
    if block == "feed_forward":
        return f"{prefix}.linear{1 if names[0] == 'inner' else 2}.{kind}"
    if block.endswith("residual"):
        return f"{prefix}.{words[block]}.{kind}"
    if names[0] == "output":
        return f"{prefix}.{words[block]}.out_proj.weight"
    return f"{prefix}.{words[block]}.in_proj_weight/{names[0]}"


def torch_value(path: str, leaf: np.ndarray) -> np.ndarray:
    """The same weights in torch's layout: outputs first, heads side by side."""
    if not path.endswith("kernel"):
        return leaf
    if "attention" not in path:
        return leaf.T
    if "output" in path:
        return leaf.reshape(-1, leaf.shape[-1]).T
    return leaf.reshape(leaf.shape[0], -1).T


def to_torch(params: Any) -> dict[str, np.ndarray]:
    """Our parameters under torch's names."""
    weights: dict[str, np.ndarray] = {}
    parts: dict[str, dict[str, np.ndarray]] = {}
    for path, leaf in flax.traverse_util.flatten_dict(params, sep="/").items():
        name, _, part = torch_names(path).partition("/")
        value = torch_value(path, np.asarray(leaf))
        if part:
            parts.setdefault(name, {})[part] = value
        else:
            weights[name] = value
    for name, three in parts.items():
        weights[name] = np.concatenate([three[k] for k in ("query", "key", "value")])
    return weights


def network_of(model: config.ModelConfig, params: Any) -> Any:
    """torch's network with our parameters; attention's biases, which the paper does
    not have, are zero and stay so."""
    import torch

    network = make_network(model)
    weights = to_torch(params)
    for name, parameter in network.named_parameters():
        if name in weights:
            parameter.data = torch.tensor(weights.pop(name))
        else:
            assert name.endswith(("in_proj_bias", "out_proj.bias")), name
            parameter.data.zero_()
            parameter.requires_grad_(False)
    assert not weights
    return network


@pytest.fixture(scope="module")
def model() -> config.ModelConfig:
    return settings.small_settings(**SIZES).model


@pytest.fixture(scope="module")
def params(model: config.ModelConfig) -> Any:
    return settings.random_params(model, vocab_size=V, seed=1)


def batch_of(seed: int) -> types.Batch:
    return settings.random_batch(
        rows=B, source_length=S, target_length=T, vocab_size=V, seed=seed
    )


def long(ids: np.ndarray) -> Any:
    import torch

    return torch.tensor(np.asarray(ids), dtype=torch.long)


def loss_of(network: Any, batch: types.Batch, *, label_smoothing: float) -> Any:
    """The mean over real tokens; torch spreads the smoothing over all V, too."""
    from torch.nn import functional

    logits = network(long(batch.source), long(batch.target_in))
    return functional.cross_entropy(
        logits.flatten(0, 1),
        long(batch.target_out).flatten(),
        label_smoothing=label_smoothing,
        ignore_index=types.PAD_ID,
    )


def test_memory_and_logits_are_torchs(model: config.ModelConfig, params: Any) -> None:
    batch = jax.tree.map(jnp.asarray, batch_of(2))
    network = transformer.Transformer(model, V)
    memory = network.apply(
        {"params": params}, batch.source, deterministic=True, method="encode"
    )
    logits = network.apply(
        {"params": params}, batch.source, batch.target_in, deterministic=True
    )
    peer = network_of(model, params).train()  # eval() would take another path
    source, target_in = long(batch.source), long(batch.target_in)
    real = np.asarray(batch.source) != types.PAD_ID
    torch_memory = peer.encode(source).detach().numpy()
    np.testing.assert_allclose(memory[real], torch_memory[real], rtol=1e-4, atol=1e-4)
    real = np.asarray(batch.target_in) != types.PAD_ID
    torch_logits = peer(source, target_in).detach().numpy()
    np.testing.assert_allclose(logits[real], torch_logits[real], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_loss_and_every_gradient_are_torchs(
    model: config.ModelConfig, params: Any, label_smoothing: float
) -> None:
    batch = batch_of(3)
    peer = network_of(model, params).train()
    torch_loss = loss_of(peer, batch, label_smoothing=label_smoothing)
    torch_loss.backward()
    arrays = jax.tree.map(jnp.asarray, batch)

    def mean(params: Any) -> jax.Array:
        logits: Any = transformer.Transformer(model, V).apply(
            {"params": params}, arrays.source, arrays.target_in, deterministic=True
        )
        sums = loss.smoothed_cross_entropy(
            logits, arrays.target_out, label_smoothing=label_smoothing
        )
        return sums.loss / sums.tokens

    value, gradients = jax.jit(jax.value_and_grad(mean))(params)
    np.testing.assert_allclose(value, torch_loss.item(), rtol=1e-5)
    expected = dict(peer.named_parameters())
    named_gradients = to_torch(gradients)
    assert named_gradients.keys() == {n for n, p in expected.items() if p.requires_grad}
    for name, gradient in named_gradients.items():
        torch_gradient = expected[name].grad.numpy()
        scale = np.abs(torch_gradient).max()
        assert scale > 0, name
        np.testing.assert_allclose(
            gradient, torch_gradient, rtol=1e-3, atol=1e-4 * scale, err_msg=name
        )


def test_twenty_updates_are_those_of_torchs_adam(model: config.ModelConfig) -> None:
    import torch

    small = settings.small_settings(**SIZES, **{"optimizer.warmup_steps": 8})
    state = step.create_state(small, vocab_size=V)
    peer = network_of(small.model, state.params).train()
    trained = [p for p in peer.parameters() if p.requires_grad]
    adam = torch.optim.Adam(
        trained,
        lr=1.0,
        betas=(small.optimizer.beta1, small.optimizer.beta2),
        eps=small.optimizer.epsilon,
    )
    # Equation 3, written again; torch's scheduler counts from 0, the paper from 1.
    rate = torch.optim.lr_scheduler.LambdaLR(
        adam,
        lambda n: small.model.d_model**-0.5 * min((n + 1) ** -0.5, (n + 1) * 8**-1.5),
    )
    run = parallel.over_devices(
        step.train_step(small, vocab_size=V, num_microbatches=1), donate_state=False
    )
    our_rate = optimizer.warmup_inverse_sqrt(
        d_model=small.model.d_model, warmup_steps=8, scale=1.0
    )
    state = parallel.replicate(state)
    for number in range(20):
        batch = batch_of(10 + number)
        np.testing.assert_allclose(rate.get_last_lr()[0], our_rate(number), rtol=1e-6)
        adam.zero_grad()
        torch_loss = loss_of(peer, batch, label_smoothing=0.1)
        torch_loss.backward()
        adam.step()
        rate.step()
        state, metrics = run(state, parallel.split_rows(batch, num_microbatches=1))
        mean = float(metrics.sums.loss / metrics.sums.tokens)
        np.testing.assert_allclose(mean, torch_loss.item(), rtol=1e-4)
    expected = dict(peer.named_parameters())
    initial_weights = to_torch(step.create_state(small, vocab_size=V).params)
    for name, value in to_torch(parallel.gather(state.params)).items():
        torch_weights = expected[name].detach().numpy()
        moved = np.abs(torch_weights - initial_weights[name]).max()
        assert moved > 1e-3, name
        # Adam divides gradients that are nothing but rounding by their own size, so
        # single weights wander; the matrices as a whole must not.
        difference = np.linalg.norm(value - torch_weights)
        assert difference <= 0.01 * np.linalg.norm(
            torch_weights - initial_weights[name]
        ), name
