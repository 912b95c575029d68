"""What browsers publish by WHIP and play by WHEP."""
