"""Parts of a stream of video: groups and queues of frames, and work in threads."""
