"""Registrations: their flows, keep-alives, GRUUs and Service-Routes.  RFC 3261 §10."""
