"""Tables 2 to 4 as printed, against what else the paper says."""

import re

import pytest

from configs import table3
from tests.paper import notes
from vaswani_jax.core import parsing
from vaswani_jax.model import cost
from vaswani_jax.paper import printed

# A second copy of table 2: BLEU and cost of En-De and En-Fr; 0 where none is printed.
TABLE2 = """
23.75  0      0       0
0      39.2   0       1.0e20
24.6   39.92  2.3e19  1.4e20
25.16  40.46  9.6e18  1.5e20
26.03  40.56  2.0e19  1.2e20
0      40.4   0       8.0e20
26.30  41.16  1.8e20  1.1e21
26.36  41.29  7.7e19  1.2e21
27.3   38.1   3.3e18  3.3e18
28.4   41.8   2.3e19  2.3e19
"""


def test_table_2_has_the_printed_figures():
    for line, system in zip(TABLE2.split("\n")[1:-1], printed.TABLE2, strict=True):
        figures = [figure or 0 for figure in (*system.bleu, *system.cost)]
        assert figures == [float(figure) for figure in line.split()]


def test_table_2_is_what_the_text_says_of_it():
    """The abstract and section 6.1 repeat the table's last row and compare it."""
    *models, base, big = printed.TABLE2
    assert big.bleu == (28.4, 41.8)
    best_ende, best_enfr = (
        max(bleu for bleu in column if bleu)
        for column in zip(*(model.bleu for model in models), strict=True)
    )
    # "More than 2.0 BLEU" above all, ensembles included; the base model, too.
    assert big.bleu[0] - best_ende > 2.0
    assert base.bleu[0] > best_ende
    single = [model for model in models if "Ensemble" not in model.name]
    assert big.bleu[1] > max(model.bleu[1] for model in single if model.bleu[1])
    assert [model.name for model in models if "Ensemble" in model.name] == [
        f"{name} Ensemble" for name in ("Deep-Att + PosUnk", "GNMT + RL", "ConvS2S")
    ]
    assert best_enfr == 41.29
    # "At a fraction of the training cost of any of the competitive models."
    assert base.cost[0] < min(cost for model in models for cost in model.cost if cost)
    # En-Fr: "less than 1/4 the training cost of the previous state-of-the-art model".
    state_of_the_art = max(single, key=lambda model: model.bleu[1] or 0)
    assert base.cost[1] < state_of_the_art.cost[1] / 4


# A second copy of its right half: perplexity, BLEU, millions of parameters (0: none).
SCORES = """
base 4.92 25.8 65
A1   5.29 24.9 0
A2   5.00 25.5 0
A3   4.91 25.8 0
A4   5.01 25.4 0
B1   5.16 25.1 58
B2   5.01 25.4 60
C1   6.11 23.7 36
C2   5.19 25.3 50
C3   4.88 25.5 80
C4   5.75 24.5 28
C5   4.66 26.0 168
C6   5.12 25.4 53
C7   4.75 26.2 90
D1   5.77 24.6 0
D2   4.95 25.5 0
D3   4.67 25.3 0
D4   5.47 25.7 0
E    4.92 25.7 0
big  4.33 26.4 213
"""


def test_table_3_has_the_printed_scores():
    lines = [line.split() for line in SCORES.split("\n")[1:-1]]
    scores = {row: tuple(map(float, figures)) for row, *figures in lines}
    assert scores == {
        row: (variation.perplexity, variation.bleu, variation.parameters or 0)
        for row, variation in printed.TABLE3.items()
    }


def test_one_vocabulary_explains_the_printed_parameters_of_the_base_models_rows():
    ranges = [
        cost.implied_vocabulary(
            parsing.parse(table3.get_config(row)).model, variation.parameters
        )
        for row, variation in printed.TABLE3.items()
        if variation.parameters and row != "big"
    ]
    assert len(ranges) == 10
    smallest, largest = max(r[0] for r in ranges), min(r[1] for r in ranges)
    assert smallest <= 41_100 <= largest


@notes.needed
def test_table_3_is_that_of_the_notes_on_the_paper():
    """Perplexity, BLEU and parameters, read from PAPER.md, which others wrote."""
    assert {
        row: tuple(float(cell or 0) for cell in cells[-3:])
        for row, cells in notes.table3_cells().items()
    } == {
        row: (variation.perplexity, variation.bleu, variation.parameters or 0)
        for row, variation in printed.TABLE3.items()
    }
    costs = "K80 2.8, K40 3.7, M40 6.0, P100 9.5"
    assert costs in notes.PATH.read_text()
    assert costs == ", ".join(
        f"{name} {operations / 1e12:.1f}"
        for name, operations in printed.SUSTAINED_FLOPS.items()
    )


@pytest.mark.parametrize(("row", "size"), [(-2, "base"), (-1, "big")])
def test_the_printed_cost_is_hours_of_hardware(row, size):
    system = printed.TABLE2[row]
    assert system.cost[0] == system.cost[1]
    assert printed.training_cost(size) == pytest.approx(system.cost[0], rel=0.01)


def test_the_operations_of_gpus_are_those_of_the_footnote():
    """Section 6.1, in 10^12 a second."""
    footnote = {"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5}
    assert {
        gpu: operations / 1e12 for gpu, operations in printed.SUSTAINED_FLOPS.items()
    } == footnote


# A second copy of table 4: parser, training, F1.
TABLE4 = """
Vinyals & Kaiser et al. (2014)  WSJ only, discriminative  88.3
Petrov et al. (2006)            WSJ only, discriminative  90.4
Zhu et al. (2013)               WSJ only, discriminative  90.4
Dyer et al. (2016)              WSJ only, discriminative  91.7
Transformer (4 layers)          WSJ only, discriminative  91.3
Zhu et al. (2013)               semi-supervised           91.3
Huang & Harper (2009)           semi-supervised           91.3
McClosky et al. (2006)          semi-supervised           92.1
Vinyals & Kaiser et al. (2014)  semi-supervised           92.1
Transformer (4 layers)          semi-supervised           92.7
Luong et al. (2015)             multi-task                93.0
Dyer et al. (2016)              generative                93.3
"""


def test_table_4_has_the_printed_rows():
    rows = [re.split("  +", line) for line in TABLE4.split("\n")[1:-1]]
    assert rows == [[row.name, row.training, f"{row.f1}"] for row in printed.TABLE4]


def test_table_4_is_what_the_text_says_of_it():
    """Section 6.3: "better results than all previously reported models with the
    exception of the Recurrent Neural Network Grammar", Dyer et al. (2016)."""
    ours = [row for row in printed.TABLE4 if row.name.startswith("Transformer")]
    for transformer in ours:
        better = [
            row.name
            for row in printed.TABLE4
            if row.training == transformer.training and row.f1 > transformer.f1
        ]
        assert set(better) <= {"Dyer et al. (2016)"}
    # "Even when training only on the WSJ training set", above the BerkeleyParser.
    petrov = next(row for row in printed.TABLE4 if row.name.startswith("Petrov"))
    assert ours[0].training == petrov.training and ours[0].f1 > petrov.f1


@notes.needed
def test_table_4_is_that_of_the_notes_on_the_paper():
    assert notes.table4_rows() == [
        (row.name.split(" (")[0], row.training.split(",")[0], row.f1)
        for row in printed.TABLE4
    ]
