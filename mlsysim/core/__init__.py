"""The language of the package: units, records, errors, formulas. No numbers, no policy."""
