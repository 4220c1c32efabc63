"""What is embedded: short, long, empty-looking, other scripts, punctuation, words that spell control tokens."""

TEXTS = [
    "This is an example sentence",
    "Each sentence is converted",
    "a",
    "Çà et là, déjà-vu: naïve café — 42 % of 1,000.5!",
    "機械学習は楽しい。 Машинное обучение 🙂",
    "[CLS] [SEP] [MASK] are words here",
    "word " * 700,  # longer than the model reads
    "tabs\tand\u00a0spaces \u200b and a very-long-hyphenated-compound-word-like-this",
]
# As published with the model: sentence-transformers on the first text.
PUBLISHED = [0.0676569, 0.0634959, 0.0487131]
