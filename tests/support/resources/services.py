"""A web service in threads of this process, which takes what is posted to it."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Service:
    """Answers with `statuses` in turn, and then with 204; `heard` is the path, headers and body."""

    def __init__(self):
        self.heard, self.statuses = [], []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.heard.append((self.path, dict(self.headers), body))
                self.send_response(service.statuses.pop(0) if service.statuses else 204)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/calls?key=k"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
