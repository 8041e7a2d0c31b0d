"""Train a small character-level GPT on sentences of a little grammar, then let it write some."""

import argparse
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--lr", type=float, default=3e-3)
parser.add_argument("--eval-every", type=int, default=100)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

CONTEXT, LAYERS, HEADS, WIDTH, DROPOUT = 64, 3, 4, 96, 0.1
GRAMMAR = {
    "sentence": ["clause.", "clause, and clause.", "when clause, clause.", "clause as clause."],
    "clause": ["thing verb thing", "thing verb thing", "thing sleeps place", "thing waits place"],
    "thing": ["the noun", "a noun", "the adjective noun", "the noun with a noun"],
    "noun": ["miller", "fox", "river", "lantern", "sailor", "clock", "garden", "letter", "raven"],
    "adjective": ["old", "quiet", "clever", "broken", "golden", "northern"],
    "verb": ["follows", "finds", "forgets", "paints", "carries", "hides"],
    "place": ["by the noun", "under the adjective noun", "near a noun"],
}

torch.manual_seed(args.seed)
device = "cuda" if torch.cuda.is_available() else "cpu"


def expand(text, rng):
    """Replace the grammar's words in a text until none is left."""
    words = []
    for word in text.split():
        stem = word.rstrip(".,")
        chosen = expand(rng.choice(GRAMMAR[stem]), rng) if stem in GRAMMAR else stem
        words.append(chosen + word[len(stem) :])
    return " ".join(words)


rng = random.Random(args.seed)
corpus = "\n".join(expand("sentence", rng) for _ in range(4000))
alphabet = sorted(set(corpus))
number = {letter: i for i, letter in enumerate(alphabet)}
tokens = torch.tensor([number[letter] for letter in corpus])
split = int(0.9 * len(tokens))
train_tokens, test_tokens = tokens[:split], tokens[split:]


def get_batch(source):
    starts = torch.randint(len(source) - CONTEXT, (args.batch_size,)).tolist()
    x = torch.stack([source[i : i + CONTEXT] for i in starts])
    y = torch.stack([source[i + 1 : i + 1 + CONTEXT] for i in starts])
    return x.to(device), y.to(device)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.dropout = nn.Dropout(DROPOUT)
        self.register_buffer("mask", torch.ones(CONTEXT, CONTEXT).tril())

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(WIDTH // HEADS)
        scores = scores.masked_fill(self.mask[:length, :length] == 0, float("-inf"))
        weights = self.dropout(F.softmax(scores, dim=-1))
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.mlp(self.norm2(x)))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(len(alphabet), WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(alphabet))

    def forward(self, x):
        places = torch.arange(x.size(1), device=x.device)
        return self.head(self.norm(self.blocks(self.letters(x) + self.places(places))))


@torch.no_grad()
def evaluate(batches=8):
    model.eval()
    total = 0.0
    for _ in range(batches):
        x, y = get_batch(test_tokens)
        total += F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()
    model.train()
    return total / batches


@torch.no_grad()
def sample(length):
    model.eval()
    x = torch.tensor([[number["\n"]]], device=device)
    for _ in range(length):
        logits = model(x[:, -CONTEXT:])[:, -1]
        x = torch.cat([x, torch.multinomial(F.softmax(logits, dim=-1), 1)], dim=1)
    return "".join(alphabet[i] for i in x[0].tolist())


model = GPT().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.1)
parameters = sum(p.numel() for p in model.parameters())
print(f"{len(corpus)} characters, {parameters} parameters, on {device}")

for step in range(1, args.steps + 1):
    x, y = get_batch(train_tokens)
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step:4d}  loss {loss.item():.4f}", flush=True)
    if step % args.eval_every == 0:
        print(f"step {step:4d}  test loss {evaluate():.4f}", flush=True)

print(sample(200))
