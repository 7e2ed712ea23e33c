"""Findings as text, Markdown, HTML and the JSON that the panel reads, and the conversion of a bundle to a saved report."""
