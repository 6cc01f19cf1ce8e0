"""Write English and French text as if it were crawled, the text of a page's readers.

  python -m tests.docs.crawled_text text

Among 950 sound training pairs are some of each kind that cleaning leaves out. The
validation and test text has some, too.
"""

import itertools
import pathlib
import random
import sys

WHO = {
    "A little girl": "Une petite fille",
    "The old man": "Le vieil homme",
    "My neighbour": "Mon voisin",
    "The teacher": "Le professeur",
    "A young woman": "Une jeune femme",
    "Our dog": "Notre chien",
    "The baker": "Le boulanger",
    "Her brother": "Son frère",
    "The doctor": "Le médecin",
    "A tourist": "Un touriste",
}
DOES = {
    "is waiting": "attend",
    "is sleeping": "dort",
    "is singing": "chante",
    "is eating": "mange",
    "is laughing": "rit",
    "is working": "travaille",
    "is running": "court",
    "is playing": "joue",
    "is reading": "lit",
    "is dancing": "danse",
}
WHERE = {
    "in front of the house": "devant la maison",
    "behind the church": "derrière l'église",
    "near the river": "près de la rivière",
    "in the garden": "dans le jardin",
    "under a big tree": "sous un grand arbre",
    "on the beach": "sur la plage",
    "in the kitchen": "dans la cuisine",
    "at the market": "au marché",
    "in the street": "dans la rue",
    "at the station": "à la gare",
}
FAULTY = [
    ("Read more", ""),
    ("", "Lire la suite"),
    ("Next page\x0b", "Page suivante"),
    ("\uf0b7 Free delivery", "\uf0b7 Livraison gratuite"),
    ("The cafe is closed today.", "Le cafÃ© est fermÃ© aujourd'hui."),
    ("The summer was long.", "L'\ufffdt\ufffd a \ufffdt\ufffd long."),
    ("It\u00e2\u20ac\u2122s raining.", "Il pleut."),
    ("Terms and conditions. " * 60, "Conditions générales. " * 60),
    ("Contact us", "Contact us"),
    ("Google Maps", "Google Maps"),
    ("Home", "Accueil - Nos produits - Nos services - Plan du site"),
    ("All rights reserved by the owner of this site.", "Merci."),
    ("+33 1 23 45 67 89", "01.23.45.67.89"),
    ("12/05/2019 - 18:30", "12.05.2019 18h30"),
    ("Welcome to our hotel.", "Добро пожаловать в наш отель."),
    ("欢迎光临我们的酒店。", "Bienvenue dans notre hôtel."),
    ("Please enter your e-mail address.", "Bitte geben Sie Ihre E-Mail-Adresse ein."),
    ("The shop is open every day.", "The shop is open every day, even on Sundays."),
    ("La boutique est ouverte.", "La boutique est ouverte tous les jours."),
]


def main() -> None:
    """Write train, valid and test into a directory."""
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    pairs = [
        tuple(f"{' '.join(parts)}." for parts in zip(*words, strict=True))
        for words in itertools.product(WHO.items(), DOES.items(), WHERE.items())
    ]
    random.Random(1).shuffle(pairs)
    texts = {
        "train": [*pairs[:600], *FAULTY, *pairs[600:950], *pairs[:25]],
        "valid": [*FAULTY[:2], *pairs[950:975]],
        "test": [*FAULTY[:2], *pairs[975:]],
    }
    for split, text in texts.items():
        for side, name in enumerate(("source", "target")):
            lines = "".join(f"{pair[side]}\n" for pair in text)
            (directory / f"{split}.{name}").write_bytes(lines.encode())


if __name__ == "__main__":
    main()
