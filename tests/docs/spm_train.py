"""Train a SentencePiece model with its own ids, as a user brings one along.

python -m tests.docs.spm_train TEXT MODEL
"""

import sys

import sentencepiece


def main() -> None:
    """Write MODEL, with the ids that SentencePiece chooses and no padding."""
    text, model = sys.argv[1:]
    with open(text, encoding="utf-8") as lines, open(model, "wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=file,
            vocab_size=502,
            minloglevel=2,
        )


if __name__ == "__main__":
    main()
