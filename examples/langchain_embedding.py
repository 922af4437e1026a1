"""LangChain: an embedding that maps queries by an adapter, and texts not at all."""

import numpy as np
from langchain_core.embeddings import Embeddings
from sklearn.feature_extraction.text import HashingVectorizer

from samewise import LiveAdapter
from samewise.datasets import load_help_desk

texts, intents, _ = load_help_desk()
words = HashingVectorizer(n_features=512, alternate_sign=False)


class Adapted(Embeddings):
    adapter = None

    def embed_documents(self, texts):
        return words.transform(texts).toarray().tolist()

    def embed_query(self, text):
        vector = words.transform([text]).toarray()[0].astype(np.float32)
        return (vector if self.adapter is None else self.adapter.embed_query(vector)).tolist()


encoder = Adapted()
items = np.array(encoder.embed_documents(texts), dtype=np.float32)
encoder.adapter = LiveAdapter(items=items, random_state=0).fit(items)
for q in range(0, len(texts), 7):
    near = np.argsort(-(items @ np.array(encoder.embed_query(texts[q]))))[1:11]
    encoder.adapter.feedback(items[q], near, np.where(intents[near] == intents[q], 1, -1))
encoder.adapter.promote()  # or wait until the guard does
print("events", encoder.adapter.n_events_, "served", encoder.adapter.guard_.served)
