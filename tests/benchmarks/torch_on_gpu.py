"""torch's nn.Transformer on a GPU, compiled, in bfloat16: the work of gpu_check.sh.

    PYTHONPATH=. python tests/benchmarks/torch_on_gpu.py --size=base

Post-norm, one embedding for source, target and softmax, sinusoids, dropout, label
smoothing, fused Adam; attention by scaled_dot_product_attention, which nn.Transformer
uses. Autocast keeps float32 parameters, as our bfloat16 does. What differs: autocast
leaves layer normalisation, and with it what passes between sub-layers, in float32;
ours is bfloat16. Its logits are bfloat16, ours float32; it has no padding mask, biases
in its attention, a layer normalisation more after either stack, and its batch lies on
the GPU, where ours is sent in each step.
"""

import argparse
import json
import math
import statistics
import time

import torch
from torch import nn

from configs import own_text
from vaswani_jax.core import parsing, types
from vaswani_jax.model import cost

ROWS, LENGTH, VOCAB_SIZE, STEPS = 784, 32, 37_000, 50


class Network(nn.Module):
    """Embeddings and softmax around nn.Transformer."""

    def __init__(self, model) -> None:
        super().__init__()
        self.scale = math.sqrt(model.d_model)
        self.embedding = nn.Embedding(VOCAB_SIZE, model.d_model)
        nn.init.normal_(self.embedding.weight, std=model.d_model**-0.5)
        position = torch.arange(LENGTH)[:, None]
        rates = 1e4 ** (-torch.arange(0, model.d_model, 2) / model.d_model)
        both = torch.stack([(position * rates).sin(), (position * rates).cos()], -1)
        self.register_buffer("positions", both.reshape(LENGTH, model.d_model))
        self.dropout = nn.Dropout(model.dropout_rate)
        self.core = nn.Transformer(
            model.d_model,
            model.num_heads,
            model.encoder_layers,
            model.decoder_layers,
            model.d_ff,
            dropout=model.dropout_rate,
            batch_first=True,
        )
        # The paper, and so our model, drops neither weights of attention nor inner
        # activations.
        for layer in [*self.core.encoder.layers, *self.core.decoder.layers]:
            layer.dropout.p = layer.self_attn.dropout = 0.0
            if hasattr(layer, "multihead_attn"):
                layer.multihead_attn.dropout = 0.0

    def forward(self, source, target, causal):
        def embed(ids):
            return self.dropout(self.embedding(ids) * self.scale + self.positions)

        hidden = self.core(
            embed(source), embed(target), tgt_mask=causal, tgt_is_causal=True
        )
        return hidden @ self.embedding.weight.t()


def main() -> None:
    """Time, and print a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=["base", "big"], default="base")
    values = own_text.get_config(parser.parse_args().size)
    values.data.source_locale, values.data.target_locale = "en", "de"
    settings = parsing.parse(values)
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda")
    network = Network(settings.model).to(device)
    adam = torch.optim.Adam(
        network.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True
    )
    shape = (ROWS, LENGTH)
    source, target, out = (
        torch.randint(types.UNK_ID + 1, VOCAB_SIZE, shape, device=device)
        for _ in range(3)
    )
    causal = nn.Transformer.generate_square_subsequent_mask(LENGTH, device=device)

    @torch.compile
    def loss_of(source, target, out):
        with torch.autocast("cuda", torch.bfloat16):
            logits = network(source, target, causal)
        return nn.functional.cross_entropy(
            logits.float().flatten(0, 1), out.flatten(), label_smoothing=0.1
        )

    seconds = []
    for _ in range(STEPS + 5):
        torch.cuda.synchronize()
        start_time = time.perf_counter()
        loss = loss_of(source, target, out)
        loss.backward()
        adam.step()
        adam.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start_time)
    median = statistics.median(seconds[5:])
    work = cost.update_flops(
        settings.model,
        vocab_size=VOCAB_SIZE,
        rows=ROWS,
        source=LENGTH,
        target=LENGTH,
    )
    figures = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "step_seconds": median,
        "target_tokens_per_second": ROWS * LENGTH / median,
        "flops_per_second": work / median,
        "loss": loss.item(),
        "peak_memory_bytes": torch.cuda.max_memory_allocated(),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
