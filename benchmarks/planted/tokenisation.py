# mypy: ignore-errors
"""Tell topics of generated texts apart, by a bag of word pieces.

Planted: a tokeniser in Python cuts every text into pieces again each time it is drawn, on all
cores, and that takes longer than the training. `--fixed` tokenises once, before the training.
"""

import argparse
import os
import random
import re
from itertools import islice

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SYLLABLES = [a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "ar", "en", "is")]
TOPICS, LENGTH = 8, 256


class Tokenizer:
    """Words are cut greedily into the longest known pieces."""

    def __init__(self):
        pieces = ["<pad>", "<unk>", *"abcdefghijklmnopqrstuvwxyz", *SYLLABLES]
        pieces += [a + b for a in SYLLABLES for b in SYLLABLES[::3]]
        self.number = {piece: i for i, piece in enumerate(pieces)}
        self.longest = max(len(piece) for piece in pieces)

    def pieces(self, word):
        start = 0
        while start < len(word):
            end = min(len(word), start + self.longest)
            while end > start + 1 and word[start:end] not in self.number:
                end -= 1
            yield self.number.get(word[start:end], 1)
            start = end

    def encode(self, text):
        words = re.findall(r"[a-z]+", text.lower())
        numbers = [number for word in words for number in self.pieces(word)][:LENGTH]
        return torch.tensor(numbers + [0] * (LENGTH - len(numbers)))


def write(rng, topic):
    favourites = SYLLABLES[topic * 12 : topic * 12 + 12]
    words = []
    for _ in range(160):
        source = favourites if rng.random() < 0.3 else SYLLABLES
        words.append("".join(rng.choice(source) for _ in range(rng.randint(1, 4))))
    return " ".join(words)


class Texts(Dataset):
    def __init__(self, count, tokenizer, beforehand):
        rng = random.Random(0)
        self.tokenizer = tokenizer
        self.topics = [rng.randrange(TOPICS) for _ in range(count)]
        self.texts = [write(rng, topic) for topic in self.topics]
        self.encoded = [tokenizer.encode(text) for text in self.texts] if beforehand else None

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        if self.encoded:
            return self.encoded[index], self.topics[index]
        return self.tokenizer.encode(self.texts[index]), self.topics[index]  # planted


def forever(loader):
    while True:
        yield from loader


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = Tokenizer()
    loader = DataLoader(
        Texts(1024, tokenizer, args.fixed),
        args.batch_size,
        shuffle=True,
        num_workers=os.cpu_count(),
        persistent_workers=True,
    )
    model = nn.Sequential(
        nn.EmbeddingBag(len(tokenizer.number), 128),
        nn.Linear(128, 512),
        nn.ReLU(),
        nn.Linear(512, TOPICS),
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for step, (tokens, topics) in enumerate(islice(forever(loader), args.steps)):
        loss = criterion(model(tokens.to(device)), topics.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
