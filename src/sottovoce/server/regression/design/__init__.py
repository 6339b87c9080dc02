"""Which channel to use: predicted from the public setting alone, before any record has answered."""

from sottovoce.server.regression.design.choose import choose, parse
from sottovoce.server.regression.design.explain import Design
from sottovoce.server.regression.design.omega import omega

__all__ = ["Design", "choose", "omega", "parse"]
