"""Run the command line with `python -m sottovoce`."""

from sottovoce.cli import main

if __name__ == "__main__":
    main()
