"""Figure 1 of the paper on online quantile regression: the two faces of exact contributions, and private releases."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce_papers.harness.cell import Row

COLOURS = {"exact": ("#2b6cb0", "#c53030"), "Direct Laplace": "#8a8a8a", "Face-exponential": "#dd6b20"}
AXES = ("$g_0$", "$g_1$", "$g_2$")
SHOWN, NEAR = 2.2, 1.5  # how far the panels reach, in the plane and in space; releases beyond are not drawn
BESIDE = 0.07


def support(figure: Any, rows: Sequence[Row]) -> None:
    """Draw a panel for every dimension (columns) and level (rows) into a figure."""
    figure.set_size_inches(9.5, 6.0)
    taus = sorted({float(row.where["tau"]) for row in rows})
    dimensions = sorted({int(row.where["p"]) for row in rows})
    for line, tau in enumerate(taus):
        for column, p in enumerate(dimensions):
            place = line * len(dimensions) + column + 1
            options = {"projection": "3d"} if p == 2 else {}
            axes = figure.add_subplot(len(taus), len(dimensions), place, **options)
            mine = [row for row in rows if float(row.where["tau"]) == tau and int(row.where["p"]) == p]
            (_line, _plane, _space)[p](axes, tau, mine)
            axes.set_title(f"$\\tau$ = {tau:g}, p = {p}", fontsize=9)
            axes.tick_params(labelsize=7)
    handles, labels = figure.axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)


def _line(axes: Any, tau: float, rows: Sequence[Row]) -> None:
    """Draw p = 0: two points on the axis of g_0, and ticks where releases fall."""
    for height, method in ((0.0, "Direct Laplace"), (-0.35, "Face-exponential")):
        values = _points(rows, method, 1)[:, 0]
        axes.plot(values, [height] * len(values), "|", color=COLOURS[method], ms=14, mew=0.6, alpha=0.6)
    for face, colour in zip((-tau, 1 - tau), COLOURS["exact"], strict=True):
        axes.plot([face], [0.35], "o", color=colour, ms=7)
    axes.set(xlim=(-SHOWN, SHOWN), ylim=(-1, 1), xlabel=AXES[0], yticks=[])


def _plane(axes: Any, tau: float, rows: Sequence[Row]) -> None:
    """Draw p = 1: two segments, and points."""
    for method in ("Direct Laplace", "Face-exponential"):
        points = _points(rows, method, 2)
        axes.plot(points[:, 0], points[:, 1], ".", color=COLOURS[method], ms=3, alpha=0.7, label=method)
    for face, colour, side in zip((-tau, 1 - tau), COLOURS["exact"], (0, 1), strict=True):
        axes.plot([face, face], [-abs(face), abs(face)], color=colour, lw=3, label=f"exact, $J$ = {side}")
    axes.set(xlim=(-SHOWN, SHOWN), ylim=(-SHOWN, SHOWN), xlabel=AXES[0], ylabel=AXES[1])


def _space(axes: Any, tau: float, rows: Sequence[Row]) -> None:
    """Draw p = 2: two squares in space, and points."""
    for face, colour in zip((-tau, 1 - tau), COLOURS["exact"], strict=True):
        first, second = np.meshgrid([-abs(face), abs(face)], [-abs(face), abs(face)])
        axes.plot_surface(np.full((2, 2), face), first, second, color=colour, alpha=0.6, shade=False)
    for method, size in (("Direct Laplace", 2.0), ("Face-exponential", 1.0)):
        points = _points(rows, method, 3)
        points = points[np.abs(points).max(axis=1) <= NEAR]
        axes.scatter(*points.T, color=COLOURS[method], s=size, alpha=0.7, depthshade=False)
    limits = (-NEAR, NEAR)
    axes.set(xlim=limits, ylim=limits, zlim=limits, xlabel=AXES[0], ylabel=AXES[1], zlabel=AXES[2])
    axes.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1], zticks=[-1, 0, 1])
    axes.view_init(elev=16, azim=-50)
    axes.set_box_aspect(None, zoom=0.9)


def _points(rows: Sequence[Row], method: str, d: int) -> Floats:
    """Return a release's points; those on the faces are moved a little, so that the faces are seen too."""
    row = next(row for row in rows if row.where["method"] == method)
    points = np.array([row.curves[f"g{j}"] for j in range(d)]).T
    if method == "Face-exponential" and d > 1:
        points[:, 0] += BESIDE
    return points
