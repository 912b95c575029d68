"""Parts of a stream of video: groups and queues of pictures, packing, and work in threads."""
