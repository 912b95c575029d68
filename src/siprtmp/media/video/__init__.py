"""Parts of a stream of video: groups and queues of frames, packing, and work in threads."""
