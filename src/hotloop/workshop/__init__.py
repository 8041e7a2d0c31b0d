"""The work of a search: its trials are ordered, watched, recorded and put together here."""
