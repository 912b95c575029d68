"""Audio that a phone cannot decode, in a codec that it can: by the libraries of ffmpeg."""
