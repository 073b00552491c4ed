"""The foundation of the package: units, records, errors and formulas, but no numbers or policy."""
