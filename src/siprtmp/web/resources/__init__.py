"""Resources: a tree that pages and programs read, change and subscribe to."""
