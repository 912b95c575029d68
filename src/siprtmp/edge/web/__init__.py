"""The edge of pages: who asks by HTTP, and the WebSockets and the file of resources."""
