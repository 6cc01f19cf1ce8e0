"""Say what a head does, if a measure is far above chance."""

import dataclasses
from collections.abc import Mapping

# At least this much over chance, in each measure without a margin of its own: Voita et
# al. (2019), "Analyzing Multi-Head Self-Attention", ask of a syntactic head ten points
# more than the best fixed offset has.
MARGIN = 0.1


@dataclasses.dataclass(frozen=True)
class Rule:
    """A role, and when a head has it.

    Attributes:
        role: What the head does, in words.
        measure: The measure that decides.
        at_least: The least value.
        over_chance: How much the value must be above chance.
        times_chance: How many times chance the value must be.
        kinds: The attention in which the words fit.
    """

    role: str
    measure: str
    at_least: float = 0.0
    over_chance: float = MARGIN
    times_chance: float = 0.0
    kinds: tuple[str, ...] = ("encoder", "decoder", "memory")

    def holds(self, value: float | None, chance: float | None, *, kind: str) -> bool:
        """Return whether a head of a kind of attention has the role."""
        if value is None or chance is None or kind not in self.kinds:
            return False
        bounds = [self.at_least, chance + self.over_chance]
        # A factor of 0 would set a bound of 0, but cosine similarities may be negative.
        if self.times_chance:
            bounds.append(chance * self.times_chance)
        return value >= max(bounds)


# Of the rules for one measure the first that holds counts.
RULES = (
    # Voita et al. (2019): "positional" from 90 % on. Half of the tokens is our choice.
    Rule("positional: previous", "previous", at_least=0.9),
    Rule("mostly previous", "previous", at_least=0.5),
    Rule("positional: next", "next", at_least=0.9),
    Rule("mostly next", "next", at_least=0.5),
    Rule("positional: itself", "self", at_least=0.9),
    Rule("mostly itself", "self", at_least=0.5),
    # Clark et al. (2019), "What Does BERT Look At?": heads that rest on [SEP] and on
    # punctuation give it more than half of their weight.
    Rule("end mark", "mark", at_least=0.5, kinds=("encoder", "memory")),
    Rule("begin mark", "mark", at_least=0.5, kinds=("decoder",)),
    Rule("punctuation", "punctuation", at_least=0.5),
    # Voita et al. (2019) found one such head, in layer 1. Both thresholds are our
    # choice.
    Rule("rare words", "rarest", at_least=0.5, over_chance=0.2),
    # Our choice: induction heads (Olsson et al., 2022) give the most weight to an
    # earlier occurrence of the same word.
    Rule("same word", "same word", over_chance=0.0, times_chance=5.0),
    Rule("similar words", "similar words", at_least=-1.0),
    # Our choice, as for rare words.
    Rule("diagonal", "diagonal", at_least=0.5, over_chance=0.2),
    Rule("alignment", "alignment", at_least=0.5, over_chance=0.2),
    Rule("syntax", "constituent"),
)
# Clark et al. (2019) call heads of high entropy a bag of words. Both thresholds are
# our choice.
BROAD, SHARP = 0.9, 0.2


def thresholds() -> dict[str, str]:
    """Return when a head has a role, in words, by the measure that decides.

    >>> thresholds()["rarest"]
    '“rare words”: at least 0.50 and at least 0.20 above chance.'
    >>> thresholds()["same word"]
    '“same word”: at least 5 times chance.'
    """
    texts: dict[str, list[str]] = {}
    for rule in RULES:
        conditions = [
            f"at least {rule.at_least:.2f}" if rule.at_least > 0 else "",
            f"at least {rule.over_chance:.2f} above chance" if rule.over_chance else "",
            f"at least {rule.times_chance:g} times chance" if rule.times_chance else "",
        ]
        text = f"“{rule.role}”: {' and '.join(filter(None, conditions))}."
        texts.setdefault(rule.measure, []).append(text)
    texts["entropy"] = [
        f"Without another role, “broad”: at least {BROAD:.2f}.",
        f"“sharp”: at most {SHARP:.2f}.",
    ]
    return {measure: " ".join(parts) for measure, parts in texts.items()}


def roles(
    measures: Mapping[str, tuple[float | None, float | None]], *, kind: str
) -> tuple[str, ...]:
    """Return what a head does, in words; nothing if nothing is clear.

    A head is called broad or sharp only if it has no other role.

    >>> roles({"previous": (0.95, 0.1), "entropy": (0.1, None)}, kind="encoder")
    ('positional: previous',)
    >>> roles({"previous": (0.25, 0.1), "entropy": (0.6, None)}, kind="encoder")
    ()

    Args:
        measures: The value and the chance level by a measure's name.
        kind: "encoder", "decoder" or "memory".
    """
    role_by_measure: dict[str, str] = {}
    for rule in RULES:
        value, chance = measures.get(rule.measure, (None, None))
        if rule.measure not in role_by_measure and rule.holds(value, chance, kind=kind):
            role_by_measure[rule.measure] = rule.role
    entropy, _ = measures.get("entropy", (None, None))
    if not role_by_measure and entropy is not None:
        if entropy >= BROAD:
            return ("broad",)
        if entropy <= SHARP:
            return ("sharp",)
    return tuple(role_by_measure.values())
