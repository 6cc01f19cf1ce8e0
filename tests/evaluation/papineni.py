"""The formula of BLEU, in exact fractions."""

import fractions
import math


def bleu_from_the_formula(outputs, references):
    """Papineni et al. 2002, equations 2 and 3, in exact fractions of a corpus.

    Clips by striking out each n-gram of the reference when it is used, and takes
    tokens as `bytes.split` does, which knows ASCII whitespace alone.
    """
    outputs = [line.encode().split() for line in outputs]
    references = [line.encode().split() for line in references]
    product = fractions.Fraction(1)
    for n in (1, 2, 3, 4):
        matched = possible = 0
        for output, reference in zip(outputs, references, strict=True):
            unused = [tuple(reference[i : i + n]) for i in range(len(reference))]
            for i in range(len(output) - n + 1):
                possible += 1
                if tuple(output[i : i + n]) in unused:
                    unused.remove(tuple(output[i : i + n]))
                    matched += 1
        if matched == 0:
            return 0.0
        product *= fractions.Fraction(matched, possible)
    c, r = sum(map(len, outputs)), sum(map(len, references))
    brevity_penalty = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * brevity_penalty * float(product) ** 0.25
