"""The heads of a model that has learned nothing, over a text."""

import numpy as np
import pytest

from tests import settings
from tests.pages import samples
from tests.pages.test_build import make_translator
from vaswani_jax.analysis import importance, measures
from vaswani_jax.inference import scoring
from vaswani_jax.pages import contents, heads, heads_text


@pytest.fixture(scope="module")
def translator():
    data = settings.small_settings(**{"data.vocab_size": 20}).data
    vocabulary = settings.learn_vocabulary(
        ["a b c d e f g h", "c d a b h g e f"] * 20, data
    )
    return make_translator(vocabulary, **{"model.num_layers": 1})


def test_all_heads_of_a_text_have_measures_and_importance(translator):
    sources = ["a b c d e f", "", "b a d c"] + ["h g f e d c b a"] * 8
    targets = ["f e d c b a", "", "c d a b"] + ["a b c d e f g h"] * 8
    text = heads_text.Text("letters", sources, targets)
    described = heads.describe_heads(translator, text)
    # The empty pair is left out.
    assert (described.text, described.num_lines) == ("letters", 10)
    assert [(head.kind, head.layer, head.head) for head in described.heads] == [
        (kind, 1, head) for kind in contents.KINDS for head in (1, 2)
    ]
    scores = translator.score(
        *([line for line in side if line] for side in (sources, targets))
    )
    log_probs = [each for score in scores for each in score.log_probs]
    np.testing.assert_allclose(described.loss, -np.mean(log_probs), rtol=1e-5)
    # By a pair at a time, with arrays from another call.
    pairs = [
        translator.attend([source], [target])[0]
        for source, target in zip(sources, targets, strict=True)
        if source
    ]
    for kind, of_kind in (
        ("memory", described.heads[4:]),
        ("encoder", described.heads[:2]),
    ):
        weights = [getattr(pair.attention, kind)[0] for pair in pairs]
        for head in of_kind:
            expected = np.mean(
                [
                    row[-1]
                    for each in weights
                    # The query that is the end mark is left out.
                    for row in each[head.head - 1][:-1]
                ]
            )
            value, chance = head.measures["mark"]
            np.testing.assert_allclose(value, expected, rtol=1e-4)
            expected_chance = np.mean(
                [1 / w.shape[2] for w in weights for _ in w[0, :-1]]
            )
            np.testing.assert_allclose(chance, expected_chance, rtol=1e-6)
    [params] = translator.replicated_params
    params_without_head = importance.switch_off(params, kind="decoder", layer=0, head=1)
    ids = [(pair.source, pair.ids) for pair in pairs]
    loss_without_head = importance.loss(
        ids,
        model=translator.member.model,
        params=params_without_head,
        vocab_size=translator.vocabulary.size,
    )
    np.testing.assert_allclose(
        described.heads[3].importance, loss_without_head - described.loss
    )
    assert set(described.descriptions) == set(measures.DESCRIPTIONS)


def test_weights_are_asked_for_batch_by_batch(translator, monkeypatch):
    """A text's weights are never in memory together."""
    monkeypatch.setattr(scoring, "TOKENS", 16)
    sizes = []

    def measure(views):
        for count, _ in enumerate(views, start=1):
            sizes.append((count, batches))
        return {kind: [] for kind in contents.KINDS}

    batches = 0
    iterate_scores = scoring.iterate_scores

    def counting(*arguments, **options):
        nonlocal batches
        for scored in iterate_scores(*arguments, **options):
            batches += 1
            yield scored

    monkeypatch.setattr(scoring, "iterate_scores", counting)
    monkeypatch.setattr(measures, "measure", measure)
    monkeypatch.setattr(importance, "loss", lambda *_, **__: 0.0)
    text = heads_text.Text("letters", ["a b"] * 3, ["b a"] * 3)
    heads.describe_heads(translator, text)
    # Three views of a pair are used before the next pair is scored.
    assert sizes == [(n, (n + 2) // 3) for n in range(1, 10)]


def test_an_ensemble_has_no_heads(translator):
    ensemble = make_translator(translator.vocabulary, steps=(1, 2))
    with pytest.raises(ValueError, match="an ensemble of 2 models has no single model"):
        heads.describe_heads(ensemble, heads_text.Text("letters", ["a"], ["b"]))


def test_a_table_has_a_row_for_each_head():
    shown = samples.heads(np.random.default_rng(0), layers=1, num_heads=2)
    title, names, *rows = heads.table(shown).splitlines()
    assert title == "500 lines of valid, loss 1.2500 nats a token"
    assert names.split() == [
        *("attention", "layer", "head", "previous", "importance", "what", "it", "does")
    ]
    assert len(rows) == 6
    assert rows[0].endswith("positional: previous")
    assert rows[1].endswith("no clear role")
    value = shown.heads[1].measures["previous"][0]
    assert rows[1].split()[:4] == ["encoder", "1", "2", f"{value:.2f}/0.10"]
