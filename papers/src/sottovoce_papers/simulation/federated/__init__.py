"""The simulations of federated quantiles (Cai, Hu and Wu): many replications abreast, fresh data or one fixed set."""
