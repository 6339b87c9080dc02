"""The site's program: records, random source and ledger behind one door, which its operator opens."""
