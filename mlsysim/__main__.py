"""`python -m mlsysim` is the command line."""

from mlsysim.cli import main

if __name__ == "__main__":
    main()
