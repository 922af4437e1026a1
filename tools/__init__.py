"""Commands for those who work on the package: `make house`, `make check`, `make mutants`, …"""
