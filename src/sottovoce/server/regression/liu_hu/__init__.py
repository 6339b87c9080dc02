"""The recursion of Liu and Hu, with self-normalised, grouped and tree-shaped inference."""
