"""HTML pages: views, view models, forms."""
