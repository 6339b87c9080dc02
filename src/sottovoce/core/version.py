"""The version that pages and files name; `sottovoce.__version__` is the same."""

VERSION = "0.1.0"
