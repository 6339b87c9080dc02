"""Proof of privacy: exact costs from integers, a lower bound from what clients send, and certificates of both."""
