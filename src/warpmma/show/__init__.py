"""Views: text, JSON and SVG of what the other rooms hold."""
