"""The papers' tables and figures again, beside the print: simulations, recipes, and the harness that runs them."""
