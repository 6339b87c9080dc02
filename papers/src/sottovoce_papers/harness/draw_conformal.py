"""Figures 2 and 3 of the paper on one-shot conformal prediction: what noise costs, and intervals about points."""

from collections.abc import Sequence
from typing import Any

from sottovoce.server.picture import clear
from sottovoce_papers.harness.cell import Row
from sottovoce_papers.harness.palette import COLOURS, NOMINAL, colours

STYLES = {"FedCP2-QQ": (0, (4, 2)), "default": "-"}
SEEN = (-6.0, 9.0)  # of the responses: most outliers are beyond, and so may be the ends of FedCP-Avg


def compensation(figure: Any, rows: Sequence[Row]) -> None:
    """Draw a panel a level, a colour a budget, over the scores of a site; the paper's dashed, ours drawn through."""
    from matplotlib.lines import Line2D

    alphas = sorted({float(row.where["alpha"]) for row in rows}, reverse=True)
    budgets = sorted({float(row.where["epsilon"]) for row in rows})
    figure.set_size_inches(3.3 * len(alphas) + 0.4, 3.8)
    for axes, alpha in zip(figure.subplots(1, len(alphas), squeeze=False)[0], alphas, strict=True):
        for epsilon, colour in zip(budgets, COLOURS, strict=False):
            for method, style in STYLES.items():
                points = sorted(
                    (int(row.where["n"]), row.measures["compensation"].value)
                    for row in rows
                    if (float(row.where["alpha"]), float(row.where["epsilon"])) == (alpha, epsilon)
                    and row.where["method"] == method
                )
                axes.plot(*zip(*points, strict=True), color=colour, ls=style, marker=".", lw=1.3)
        axes.axhline(1 - alpha, color=NOMINAL, lw=1.1, ls=(0, (1, 2)), zorder=1)
        axes.set_xscale("log")
        axes.set_title(f"alpha {alpha:g}", fontsize=9, loc="left")
        axes.set_xlabel("scores of a site", fontsize=9)
        axes.tick_params(labelsize=8)
        clear(axes)
    figure.axes[0].set_ylabel("coverage of the pair without noise", fontsize=9)
    handles = [
        Line2D([], [], color=colour, label=f"epsilon {e:g}") for e, colour in zip(budgets, COLOURS, strict=False)
    ]
    handles += [Line2D([], [], color="#333333", ls=style, label=method) for method, style in STYLES.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8.5, frameon=False)


def intervals(figure: Any, rows: Sequence[Row]) -> None:
    """Draw the points, and a panel a method with its intervals over x."""
    (points,) = (row for row in rows if row.where["method"] == "points")
    methods = [row for row in rows if "low" in row.curves]
    colour = colours([str(row.where["method"]) for row in methods])
    figure.set_size_inches(2.9 * len(methods) + 0.4, 3.3)
    panels = figure.subplots(1, len(methods), squeeze=False, sharey=True)[0]
    for axes, row in zip(panels, methods, strict=True):
        method = str(row.where["method"])
        axes.plot(points.curves["x"], points.curves["y"], ".", color="#9a9a9a", ms=2.5, zorder=1)
        axes.fill_between(row.curves["x"], row.curves["low"], row.curves["high"], color=colour[method], alpha=0.3, lw=0)
        for end in ("low", "high"):
            axes.plot(row.curves["x"], row.curves[end], color=colour[method], lw=1.1)
        axes.set_ylim(*SEEN)
        axes.set_title(method, fontsize=9, loc="left")
        axes.set_xlabel("x", fontsize=9)
        axes.tick_params(labelsize=8)
        clear(axes)
    figure.axes[0].set_ylabel("response", fontsize=9)
