"""Tables 2 to 4 as printed, the conclusions drawn from table 3, and the costs."""

import dataclasses

SECONDS_PER_HOUR = 3600
# Section 6.1's footnote: sustained single-precision operations per second.
SUSTAINED_FLOPS = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}
# Section 5.2: eight P100; base 100,000 steps of 0.4 s are "12 hours", big 3.5 days.
HOURS = {"base": 12.0, "big": 3.5 * 24}
GPUS = 8
WARMUP_STEPS = 4000  # section 5.3


@dataclasses.dataclass(frozen=True)
class System:
    """A row of table 2: En-De, then En-Fr; None where nothing is printed.

    Attributes:
        name: As printed.
        bleu: On newstest2014.
        cost: Of training, in floating-point operations.
    """

    name: str
    bleu: tuple[float | None, float | None]
    cost: tuple[float | None, float | None]


TABLE2 = (
    System("ByteNet", (23.75, None), (None, None)),
    System("Deep-Att + PosUnk", (None, 39.2), (None, 1.0e20)),
    System("GNMT + RL", (24.6, 39.92), (2.3e19, 1.4e20)),
    System("ConvS2S", (25.16, 40.46), (9.6e18, 1.5e20)),
    System("MoE", (26.03, 40.56), (2.0e19, 1.2e20)),
    System("Deep-Att + PosUnk Ensemble", (None, 40.4), (None, 8.0e20)),
    System("GNMT + RL Ensemble", (26.30, 41.16), (1.8e20, 1.1e21)),
    System("ConvS2S Ensemble", (26.36, 41.29), (7.7e19, 1.2e21)),
    System("Transformer (base model)", (27.3, 38.1), (3.3e18, 3.3e18)),
    System("Transformer (big)", (28.4, 41.8), (2.3e19, 2.3e19)),
)


@dataclasses.dataclass(frozen=True)
class Variation:
    """A row of table 3, on newstest2013.

    Attributes:
        perplexity: Per subword.
        bleu: From 0 to 100.
        parameters: In millions; None if not printed.
    """

    perplexity: float
    bleu: float
    parameters: float | None


TABLE3 = {
    "base": Variation(4.92, 25.8, 65.0),
    "A1": Variation(5.29, 24.9, None),
    "A2": Variation(5.00, 25.5, None),
    "A3": Variation(4.91, 25.8, None),
    "A4": Variation(5.01, 25.4, None),
    "B1": Variation(5.16, 25.1, 58.0),
    "B2": Variation(5.01, 25.4, 60.0),
    "C1": Variation(6.11, 23.7, 36.0),
    "C2": Variation(5.19, 25.3, 50.0),
    "C3": Variation(4.88, 25.5, 80.0),
    "C4": Variation(5.75, 24.5, 28.0),
    "C5": Variation(4.66, 26.0, 168.0),
    "C6": Variation(5.12, 25.4, 53.0),
    "C7": Variation(4.75, 26.2, 90.0),
    "D1": Variation(5.77, 24.6, None),
    "D2": Variation(4.95, 25.5, None),
    "D3": Variation(4.67, 25.3, None),
    "D4": Variation(5.47, 25.7, None),
    "E": Variation(4.92, 25.7, None),
    "big": Variation(4.33, 26.4, 213.0),
}


QUALITY = ("bleu", "perplexity")


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """A conclusion that the text draws from table 3.

    Attributes:
        section: Where it stands.
        text: The conclusion.
        figures: That it is about; both if the text speaks of quality or of results.
        pairs: The worse row and the better one.
        same: Whether neither row is the better one.
    """

    section: str
    text: str
    figures: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    same: bool = False


CONCLUSIONS = (
    Conclusion("6.2", "a single head is worse", ("bleu",), (("A1", "base"),)),
    Conclusion("6.2", "too many heads are worse", QUALITY, (("A4", "base"),)),
    Conclusion(
        "6.2", "a smaller d_k is worse", QUALITY, (("B1", "base"), ("B2", "base"))
    ),
    Conclusion(
        "6.2",
        "a bigger model is better",
        QUALITY,
        (
            *(("C1", "C2"), ("C2", "base"), ("base", "C3")),  # N
            *(("C4", "base"), ("base", "C5")),  # d_model
            *(("C6", "base"), ("base", "C7")),  # d_ff
            ("base", "big"),
        ),
    ),
    Conclusion("6.2", "dropout helps", QUALITY, (("D1", "base"),)),
    Conclusion(
        "6.2", "learned positions do as well", QUALITY, (("E", "base"),), same=True
    ),
    Conclusion(
        "5.4",
        "label smoothing hurts perplexity",
        ("perplexity",),
        (("base", "D3"), ("D4", "base")),
    ),
    Conclusion("5.4", "label smoothing improves BLEU", ("bleu",), (("D3", "base"),)),
)


@dataclasses.dataclass(frozen=True)
class Parser:
    """A row of table 4, on section 23 of the Wall Street Journal's treebank (WSJ).

    Attributes:
        name: As printed.
        training: What it was trained on, as printed.
        f1: Of labelled brackets, from 0 to 100.
    """

    name: str
    training: str
    f1: float


WSJ_ONLY = "WSJ only, discriminative"
SEMI_SUPERVISED = "semi-supervised"
TABLE4 = (
    Parser("Vinyals & Kaiser et al. (2014)", WSJ_ONLY, 88.3),
    Parser("Petrov et al. (2006)", WSJ_ONLY, 90.4),
    Parser("Zhu et al. (2013)", WSJ_ONLY, 90.4),
    Parser("Dyer et al. (2016)", WSJ_ONLY, 91.7),
    Parser("Transformer (4 layers)", WSJ_ONLY, 91.3),
    Parser("Zhu et al. (2013)", SEMI_SUPERVISED, 91.3),
    Parser("Huang & Harper (2009)", SEMI_SUPERVISED, 91.3),
    Parser("McClosky et al. (2006)", SEMI_SUPERVISED, 92.1),
    Parser("Vinyals & Kaiser et al. (2014)", SEMI_SUPERVISED, 92.1),
    Parser("Transformer (4 layers)", SEMI_SUPERVISED, 92.7),
    Parser("Luong et al. (2015)", "multi-task", 93.0),
    Parser("Dyer et al. (2016)", "generative", 93.3),
)


def training_cost(model: str) -> float:
    """Return table 2's operations: time x GPUs x sustained operations per second.

    >>> f"{training_cost('base'):.1e} {training_cost('big'):.1e}"
    '3.3e+18 2.3e+19'
    """
    return HOURS[model] * SECONDS_PER_HOUR * GPUS * SUSTAINED_FLOPS["P100"]
