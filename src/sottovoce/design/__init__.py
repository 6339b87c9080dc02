"""Which channel to use: predicted from the public setting alone, before any record has answered."""

from sottovoce.design.auto import choose
from sottovoce.design.explain import Design
from sottovoce.design.named import parse
from sottovoce.design.omega import omega

__all__ = ["Design", "choose", "omega", "parse"]
