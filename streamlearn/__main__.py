"""`python -m streamlearn` is `streamlearn`, also where the command is not on the path."""

from streamlearn.cli import main

if __name__ == "__main__":
    main()
