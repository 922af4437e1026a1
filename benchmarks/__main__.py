"""Run the benchmarks: `python -m benchmarks [SECTION …]`; without a section, all of them.

Ratios are of CPU time of one thread, medians of interleaved repeats in one run, with one BLAS
thread; LMNN and the energy rule use as many threads as there are processors. "wanted" is the goal
set for each, "prototype" what a first prototype reached on another machine. `RESULTS.md` keeps the
last run of each section.
"""

from __future__ import annotations

import os
import sys

# Before NumPy is imported: BLAS reads it once.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"


def table(rows: list[dict[str, object]]) -> str:
    if not rows:
        return "left out: the data are not here"
    columns = list(dict.fromkeys(name for row in rows for name in row if name != "wanted"))
    columns += ["wanted"] * any("wanted" in row for row in rows)
    cells = [[str(row.get(c, "")) for c in columns] for row in rows]
    widths = [max(len(c), *(len(r[i]) for r in cells)) for i, c in enumerate(columns)]
    lines = [columns, ["-" * w for w in widths], *cells]
    return "\n".join(
        "  ".join(text.rjust(w) for text, w in zip(line, widths, strict=True)) for line in lines
    )


def main(chosen: list[str]) -> None:
    from benchmarks import (
        adapt,
        aroma,
        comparison,
        energy,
        filtering,
        growth,
        kernel,
        lmnn,
        memory,
        metric_learn_errors,
        minima,
        nca_defaults,
        oasis,
        pa,
        peers,
        psd,
        rbs,
        regression,
        results,
        river_segments,
        scale,
        scale_model,
        search,
        service,
        service_growth,
        sila,
        single,
        startup,
    )

    against_metric_learn = [
        ("metric-learn, both with their defaults: 3-NN errors", metric_learn_errors.run),
        ("MLKR and metric-learn's: errors of 5-NN regression", metric_learn_errors.run_numbers),
    ]
    sections = {
        "pa": [("PA-I, no projection", pa.run)],
        "psd": [
            ("PA-I, M ⪰ 0 after every step, projections active", psd.run_active),
            ("PA-I, M ⪰ 0 after every step, M stays positive definite", psd.run_inside),
        ],
        "river": [("River's ImageSegments, progressive accuracy", river_segments.run)],
        "regression": [("MLKR before k-NN regression", regression.run)],
        "oasis": [
            ("OASIS, dense", oasis.run_dense),
            ("OASIS, sparse, 1000 × 1000", oasis.run_sparse),
        ],
        "aroma": [
            ("f-AROMA, dense", aroma.run_factored),
            ("d-AROMA, sparse, 1000 × 1000", aroma.run_diagonal),
            ("500 000 triplets of 20 Newsgroups", aroma.run_newsgroups),
        ],
        "service": [
            ("The service over HTTP on loopback, 20 000 items of 384", service.run_http),
            ("The same with two processes that answer searches", service.run_workers),
            ("Exact search of the service, CPU time", service.run_search),
            ("Search by a graph, CPU time", service.run_graph),
            ("A million items", service.run_large),
        ],
        "service_growth": [("A million events into the service", service_growth.run)],
        "growth": [("How time and memory grow", growth.run)],
        "single": [("One event at a time, CPU time", single.run)],
        "adapt": [("The live adapter, µs of CPU time: an event of ten items, a query", adapt.run)],
        "lmnn": [
            ("LMNN, end to end", lmnn.run),
            ("LMNN, how the cost grows", lmnn.run_growth),
        ],
        "kernel": [("KernelLMNN, 10 000 × 164 of MNIST", kernel.run)],
        "energy": [("The energy rule", energy.run)],
        "search": [
            ("Exact neighbors: one thread, and its peers", search.run_exact),
            ("Graphs behind a map, the 10 nearest", search.run_graphs),
            ("Exact neighbors: trees and products", search.run),
            ("Impostors: trees and products", search.run_impostors),
        ],
        "sila": [
            ("SiLA, an epoch of letter", sila.run_epoch),
            ("SiLA, µs an example with a pool", sila.run_pools),
            ("eSiLA, A ⪰ 0 after every step", sila.run_projected),
            ("gCosLA, A ⪰ 0 after every step", sila.run_cosine),
        ],
        "rbs": [("RBS, sRBS and Relief, 20 000 × 57", rbs.run)],
        "filtering": [
            ("Filtering, 100 000 documents × 50 topics", filtering.run),
            ("Kill −9 and resume", filtering.run_killed),
        ],
        "memory": [("Memory beyond the data, MiB", memory.run)],
        "scale": [
            ("Learners on parts beside the plain ones", scale.run_equality),
            ("On two workers of a Dask cluster", scale.run_overhead),
            ("Copies of rows between parts, LMNN", scale.run_ghosts),
            ("What a task costs", scale.run_task),
            ("More rows than the workers may hold", scale.run_out_of_core),
            ("10⁷ items in parts", scale.run_items),
            ("Streams on one core", scale.run_streams),
            ("AROMA on several streams, mAP", scale.run_mixing),
            ("Constants of the model of costs", scale_model.run_constants),
            ("What the model says, and what was measured", scale_model.run_predictions),
            ("What the model says of sizes that were not measured", scale_model.run_plan),
        ],
        "startup": [
            ("Seconds to start", startup.run),
            ("CPU seconds of commands, everything compiled", startup.run_commands),
        ],
        "peers": [("LMNN and its peers at equal loss", peers.run)],
        "comparison": [
            ("NCA and scikit-learn's, both with their defaults", nca_defaults.run),
            ("Each learner against its peers, at an equal or better objective", comparison.run),
            ("LMNN and its peers at equal loss", peers.run),
            *against_metric_learn,
        ],
        "closed": [("Closed forms and their peers, the same matrix", comparison.run_closed)],
        "metric_learn": against_metric_learn,
        "nca": [("NCA and scikit-learn's, both with their defaults", nca_defaults.run)],
        "minima": [("NCA: the losses reached, and scikit-learn's", minima.run)],
    }
    unknown = set(chosen) - set(sections)
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(sorted(unknown))}; there are {', '.join(sections)}")
    for name in chosen or sections:
        about, tables = results.machine(), []
        for title, run in sections[name]:
            tables.append((title, table(run())))
            print(f"\n{title}\n\n{tables[-1][1]}", flush=True)
        results.keep(name, about, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
