"""Sources: the publications that registry rows cite, one module per registry."""
