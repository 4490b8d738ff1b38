"""`python -m leapts`."""

from leapts.cli import main

if __name__ == "__main__":
    main()
