"""How objectives over a matrix are minimized.

An objective is anything with ``value_and_gradient(L)`` (`evaluation.Objective`); a solver knows
nothing else about it.

Two implementations of L-BFGS are used:

- *SciPy's* L-BFGS-B (`smooth.minimize_smooth`) where the objective is smooth, stays the same during
  the run and may have bounds: SNN, SRBS.
- *Ours* (`lbfgs.LBFGS`) where one step at a time is needed. LMNN's hinges have kinks, on which
  SciPy's line search for the strong Wolfe conditions fails; between two steps its candidates are
  searched anew, a step may be shortened, and the memory cleared. `factored_convex.solve` proves
  between two steps how far the minimum of a convex problem over M = LᵀL can be, and leads on where
  L has lost rank: MCML, MMC. NCA drops its penalty during the run.

`run_log.RunLog` keeps the history, calls the callback, takes note of Ctrl-C and, with a
`held_out.HeldOut`, stops when the error on held-out examples no longer falls.
`workers.workers` are the threads that share the rows of an objective.
"""
