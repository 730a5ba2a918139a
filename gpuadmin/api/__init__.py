"""REST over HTTP. Django REST framework is used here and nowhere else."""
