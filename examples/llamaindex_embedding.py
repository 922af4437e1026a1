"""LlamaIndex: an embedding that maps queries by an adapter, and texts not at all."""

import numpy as np
from llama_index.core.embeddings import BaseEmbedding
from sklearn.feature_extraction.text import HashingVectorizer

from samewise import LiveAdapter
from samewise.datasets import load_help_desk

texts, intents, _ = load_help_desk()
words = HashingVectorizer(n_features=512, alternate_sign=False)


class Adapted(BaseEmbedding):
    adapter: LiveAdapter | None = None

    def _get_text_embedding(self, text):
        return words.transform([text]).toarray()[0].tolist()

    def _get_query_embedding(self, query):
        vector = np.array(self._get_text_embedding(query), dtype=np.float32)
        return (vector if self.adapter is None else self.adapter.embed_query(vector)).tolist()

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


encoder = Adapted()
items = np.array(encoder.get_text_embedding_batch(texts), dtype=np.float32)
encoder.adapter = LiveAdapter(items=items, random_state=0).fit(items)
for q in range(0, len(texts), 7):
    near = np.argsort(-(items @ np.array(encoder.get_query_embedding(texts[q]))))[1:11]
    encoder.adapter.feedback(items[q], near, np.where(intents[near] == intents[q], 1, -1))
encoder.adapter.promote()  # or wait until the guard does
print("events", encoder.adapter.n_events_, "served", encoder.adapter.guard_.served)
