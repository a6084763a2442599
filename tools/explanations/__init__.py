"""Explanations of random dot products and chains, against what the engines compute."""
