"""Findings as text, Markdown and the JSON that the panel reads; and the one way from a bundle to a kept report."""
