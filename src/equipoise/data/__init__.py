"""Tables only: roles, engines, cells. No statistics here."""
