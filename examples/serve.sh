#!/bin/sh
# A search that learns: start, put items, search, teach, see the promotion, roll back, kill -9, start
# again, same answers. Usage: sh examples/serve.sh [DATA_DIR] [PORT]
set -eu

data=${1:-$(mktemp -d)/data}
port=${2:-8350}
url=http://127.0.0.1:$port/collections/digits
python=${PYTHON:-python}
work=$(mktemp -d)
service=

start() {
    "$python" -m samewise.cli serve "$data" --port "$port" &
    service=$!
    until curl --silent --fail --output /dev/null "http://127.0.0.1:$port/readyz"; do
        kill -0 "$service"
        sleep 0.2
    done
}

post() {
    curl --silent --show-error --fail --json "$2" "$url/$1"
    echo
}

trap 'kill "$service" 2>/dev/null || true; rm -rf "$work"' EXIT

echo "== start, and put 1797 handwritten digits: 64 numbers each"
start
curl --silent --fail --request PUT --json '{}' "$url"
echo
"$python" - "http://127.0.0.1:$port" "$work" <<'PYTHON'
import json, pathlib, sys
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize
from samewise import Client

X, y = load_digits(return_X_y=True)
X = normalize(X - X.mean(axis=0))
with Client(sys.argv[1], "digits") as client:
    client.put([f"digit-{i}" for i in range(len(X))], X, [{"digit": int(c)} for c in y])
query = {"vector": X[5].tolist(), "k": 3}
pathlib.Path(sys.argv[2], "query.json").write_text(json.dumps(query))
query["which"] = "live"
pathlib.Path(sys.argv[2], "live.json").write_text(json.dumps(query))
PYTHON

echo "== search"
post search "@$work/query.json"

echo "== teach: users like what shows the same digit, until the guard promotes what was learned"
"$python" - "http://127.0.0.1:$port" <<'PYTHON'
import sys
import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize
from samewise import Client

X, y = load_digits(return_X_y=True)
X = normalize(X - X.mean(axis=0))
random = np.random.RandomState(0)
with Client(sys.argv[1], "digits") as client:
    n = 0
    while not client.guard()["history"] and n < 5000:
        events = []
        for q in random.randint(len(X), size=25):
            found = client.search(X[q], k=11, explore=4)
            judged = {True: [], False: []}
            for result in found["results"]:
                if result["id"] != f"digit-{q}":
                    judged[result["payload"]["digit"] == y[q]].append(result["id"])
            events.append(
                {
                    "type": "judged",
                    "impression": found["impression"],
                    "liked": judged[True],
                    "disliked": judged[False],
                }
            )
        seq = client.feedback(events)["seq"]
        client.search(X[0], min_seq=seq)
        n += len(events)
    print("promoted after", client.guard()["history"][0]["event"], "judged lists")
PYTHON
curl --silent --fail "$url/versions"
echo

echo "== roll back"
post rollback '{}'

echo "== kill -9, start again: the same answers"
answers() {
    for query in query live; do
        # Impressions have a new name each time.
        post search "@$work/$query.json" | sed 's/"impression":"[0-9a-f]*"//'
    done
    curl --silent --fail "$url/guard"
}
answers > "$work/before"
kill -9 "$service"
wait "$service" 2>/dev/null || true
start
answers > "$work/after"
cmp "$work/before" "$work/after"
echo "the same"

echo "== check everything"
kill "$service"
wait "$service" || true
"$python" -m samewise.cli serve "$data" --check
