"""Who may call by RTMP, who is behind a call, and whose names take calls."""
