"""Register budgets of roles."""
