"""Sets of code points, and the properties and case folding of Unicode."""
