"""Comparisons of warpmma with a GPU, ptxas or Triton."""
