"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017)::

    import vaswani_jax
    translator = vaswani_jax.load("runs/demo")
    translator.translate(["3 hours ago"])  # ["vor 3 Stunden"]

The names in `__all__` are public and stay as they are between minor versions; all other
names may change. Each is imported when it is first used, so that importing the package
costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vaswani_jax.api import load, load_config
    from vaswani_jax.checkpoints.store import Checkpoint
    from vaswani_jax.comparer import compare_systems
    from vaswani_jax.core.config import Config
    from vaswani_jax.data.mixture import CorpusShare, EpochShares
    from vaswani_jax.data.subwords import Subwords
    from vaswani_jax.data.tokenizer import Tokenizer
    from vaswani_jax.data.vocabulary import Vocabulary
    from vaswani_jax.data.word_noise import WordNoise
    from vaswani_jax.evaluation.bleu import Score
    from vaswani_jax.evaluation.comparison import SystemComparison
    from vaswani_jax.evaluation.scores import Evaluation
    from vaswani_jax.inference.back_translation import (
        BackTranslation,
        BackTranslationOptions,
        back_translate,
    )
    from vaswani_jax.inference.ensemble import Member
    from vaswani_jax.inference.results import Attention, Hypothesis, Output, PairScore
    from vaswani_jax.inference.translator import Translator
    from vaswani_jax.model.transformer import Transformer
    from vaswani_jax.pages.build import make_page
    from vaswani_jax.pages.comparison_page import write_comparison
    from vaswani_jax.pages.contents import Page
    from vaswani_jax.pages.page_file import PageFile, write_page
    from vaswani_jax.preparer import Preparation, prepare
    from vaswani_jax.text_checks.checks import check_data
    from vaswani_jax.text_checks.findings import Finding
    from vaswani_jax.text_checks.report import DataReport
    from vaswani_jax.trainer import SeedsResult, TrainingResult, train, train_seeds
    from vaswani_jax.training.divergence import DivergedError
    from vaswani_jax.training.preemption import Stopped

__all__ = [
    "Attention",
    "BackTranslation",
    "BackTranslationOptions",
    "Checkpoint",
    "Config",
    "CorpusShare",
    "DataReport",
    "DivergedError",
    "EpochShares",
    "Evaluation",
    "Finding",
    "Hypothesis",
    "Member",
    "Output",
    "Page",
    "PageFile",
    "PairScore",
    "Preparation",
    "Score",
    "SeedsResult",
    "Stopped",
    "Subwords",
    "SystemComparison",
    "Tokenizer",
    "TrainingResult",
    "Transformer",
    "Translator",
    "Vocabulary",
    "WordNoise",
    "__version__",
    "back_translate",
    "check_data",
    "compare_systems",
    "load",
    "load_config",
    "make_page",
    "prepare",
    "train",
    "train_seeds",
    "write_comparison",
    "write_page",
]
__version__ = "0.2.0"

_MODULES = {
    "Attention": "inference.results",
    "BackTranslation": "inference.back_translation",
    "BackTranslationOptions": "inference.back_translation",
    "Checkpoint": "checkpoints.store",
    "Config": "core.config",
    "CorpusShare": "data.mixture",
    "DataReport": "text_checks.report",
    "DivergedError": "training.divergence",
    "EpochShares": "data.mixture",
    "Evaluation": "evaluation.scores",
    "Finding": "text_checks.findings",
    "Hypothesis": "inference.results",
    "Member": "inference.ensemble",
    "Output": "inference.results",
    "Page": "pages.contents",
    "PageFile": "pages.page_file",
    "PairScore": "inference.results",
    "Preparation": "preparer",
    "Score": "evaluation.bleu",
    "SeedsResult": "trainer",
    "Stopped": "training.preemption",
    "Subwords": "data.subwords",
    "SystemComparison": "evaluation.comparison",
    "Tokenizer": "data.tokenizer",
    "TrainingResult": "trainer",
    "Transformer": "model.transformer",
    "Translator": "inference.translator",
    "Vocabulary": "data.vocabulary",
    "WordNoise": "data.word_noise",
    "back_translate": "inference.back_translation",
    "check_data": "text_checks.checks",
    "compare_systems": "comparer",
    "load": "api",
    "load_config": "api",
    "make_page": "pages.build",
    "prepare": "preparer",
    "train": "trainer",
    "train_seeds": "trainer",
    "write_comparison": "pages.comparison_page",
    "write_page": "pages.page_file",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
