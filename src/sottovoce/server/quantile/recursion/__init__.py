"""The recursion of Cai, Hu and Wu for federated quantiles."""
