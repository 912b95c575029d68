"""The tree that explains octets: fields, where their rules come from, and what is known beside."""
