"""Promotion: a finding becomes a case of the suite."""
