"""One-shot conformal prediction without a score: plan, the one round, threshold and coverage report.

`settings` checks what is asked for, `plan` decides from public numbers what to ask of the sites (`coverage` has the
exact distributions), `votes` and `pooled` are the methods that count the answers, `result`, `pooled` and `report` are
what comes out.
"""
