"""A web server for the built site, for this machine only."""

from __future__ import annotations

import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tools.dev.console import ROOT, DevError, say

HOST = "127.0.0.1"


class Handler(SimpleHTTPRequestHandler):
    """Serve files without a log, and show the site's own page if a file is missing."""

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""

    def send_head(self) -> Any:
        """Find the file; an address that cannot be a file name counts as a missing file."""
        try:
            return super().send_head()
        except ValueError:
            self.send_error(404)
            return None

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a missing page with 404.html."""
        page = Path(self.directory) / "404.html"
        if code != 404 or not page.is_file():
            super().send_error(code, message, explain)
            return
        body = page.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """A server that ignores connections that end early."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report all errors except those of the connection."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def built() -> Path:
    """Return the folder that was built last: the site or its preview."""
    homes = (ROOT / name / "index.html" for name in ("_site", "_preview"))
    pages = [page for page in homes if page.is_file()]
    if not pages:
        raise DevError("there is no built site yet; build it with: python3 dev.py site")
    return max(pages, key=lambda page: page.stat().st_mtime).parent


def serve(port: int) -> int:
    """Serve the built site until interrupted; if the port is in use, take any free one."""
    folder = built()
    handler = partial(Handler, directory=str(folder))
    try:
        server = Server((HOST, port), handler)
    except OSError:
        server = Server((HOST, 0), handler)
    with server:
        say(f"{folder.name} at http://{HOST}:{server.server_port}/ (stop with Ctrl-C)")
        server.serve_forever()
    return 0
