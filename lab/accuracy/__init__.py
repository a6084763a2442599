"""How far the approximate functions are from exact ones, over all inputs: forms, measuring, facts, tables, figures."""
