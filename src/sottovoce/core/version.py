"""The version: the packages, `sottovoce.__version__`, pages, files and certificates have it from here."""

VERSION = "0.1.0"
