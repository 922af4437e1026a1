"""What the product does in two minutes: a search that learns from its users (`python -m demo`), and
metrics learned from a stream of pairs and from labels (`python -m demo.pairs`)."""
