"""Programs that build and check the project; nothing here is part of the package."""
