"""Bundle the files with which lab pages run the package in the browser."""
