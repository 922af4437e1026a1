"""How a matrix moves: directions × step × store × PSD policy × averaging, and the loop."""
