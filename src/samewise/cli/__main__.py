"""`python -m samewise.cli`: the command where its script is not on the path."""

from samewise.cli import main

if __name__ == "__main__":
    main()
