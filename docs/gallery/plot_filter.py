"""
Which documents of a stream belong to my topics?
================================================

Documents come one by one, and topics are a few words each. A `TopicFilter` decides at once, asks a
question now and then, and learns from the answers: without any it hardly dares to assign one. The
curves are the F-measure of the last 1000 documents, with no question, with 5 and with 20.
"""

import matplotlib.pyplot as plt
import numpy as np

from samewise.filtering import TopicFilter

rng = np.random.default_rng(0)
letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
words = np.array(["".join(rng.choice(letters, 6)) for _ in range(600)])
own = {name: words[20 * k : 20 * k + 20] for k, name in enumerate(("cocoa", "gold", "wheat"))}
topics = {name: " ".join([name, *some[:6]]) for name, some in own.items()}


def document():
    """Forty words, some of them of a topic, and its name; nine of ten have none."""
    name = rng.choice([*own, *[None] * 27])
    many = rng.integers(10, 20) if name else 0
    text = [*rng.choice(words, 40 - many), *(rng.choice(own[name], many) if name else [])]
    return " ".join(text), name


stream = [document() for _ in range(4000)]
plt.figure(figsize=(6, 3.5), layout="constrained")
for budget in (0, 5, 20):
    found, filter = [], TopicFilter(feedback_budget=budget).fit(topics)
    for number, (text, name) in enumerate(stream):
        said = set()
        for decision in filter.observe(text, str(number)):
            asked = decision.action == "ask"
            if asked:
                filter.feedback(decision.document, decision.topic, decision.topic == name)
            if not asked or decision.topic == name:
                said.add(decision.topic)
        found.append((name in said, len(said), name is not None))
    right, assigned, relevant = (
        np.convolve(each, np.ones(1000), "valid") for each in np.array(found, dtype=float).T
    )
    plt.plot(np.arange(1000, 4001), 2 * right / (assigned + relevant), label=f"{budget} questions")
plt.xlabel("documents")
plt.ylabel("F of the last 1000")
plt.legend()
plt.show()
