"""Width, epsilon and people: two of them given, the third follows, from public guesses alone, before any question."""
