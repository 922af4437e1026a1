"""A learned metric as the last layer of a sentence-transformers model, which is saved with it.

The encoder is one that counts words, so that nothing is downloaded. Another goes in its place:
encoder = SentenceTransformer("all-MiniLM-L6-v2").
"""

from itertools import chain

import numpy as np
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import BoW, Dense

from samewise import LDA

THINGS = {"card": "card pin credit limit".split(), "loan": "loan rate mortgage interest".split()}
COMMON = "please help me with my a the about question today again new bank account how why".split()
rng = np.random.default_rng(0)
topics = rng.choice(list(THINGS), size=400)
texts = [" ".join([*rng.choice(COMMON, 3), rng.choice(THINGS[topic])]) for topic in topics]

words = sorted({*COMMON, *chain(*THINGS.values())})
encoder = SentenceTransformer(modules=[BoW(vocab=words)], device="cpu")

learned = LDA(shrinkage=0.1).fit(encoder.encode(texts[:200]), topics[:200])
learned.metric_.to_safetensors("map.safetensors")
weight = load_file("map.safetensors")["weight"]
layer = Dense(weight.shape[1], weight.shape[0], bias=False, activation_function=torch.nn.Identity())
layer.linear.load_state_dict({"weight": weight})
SentenceTransformer(modules=[*encoder, layer], device="cpu").save("with_map")

model = SentenceTransformer("with_map", device="cpu", similarity_fn_name="euclidean")
for name, each in (("start", encoder), ("live", model)):
    stored, asked = each.encode(texts[:200]), each.encode(texts[200:])
    near = torch.cdist(torch.tensor(asked), torch.tensor(stored)).argmin(dim=1)
    print(name, round(float(np.mean(topics[:200][near.numpy()] == topics[200:])), 3))
expected = learned.metric_.closeness(encoder.encode(texts[200:220]), encoder.encode(texts[:20]))
found = model.similarity(model.encode(texts[200:220]), model.encode(texts[:20]))
assert np.allclose(found, expected, atol=1e-3)
