"""A Chromium for the tests: found on the machine, never downloaded, kept off the network."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    ViewportSize,
)

from tools.dev.serving import HOST, Handler, Server

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Other hosts do not exist. To intercept each request would switch the browser's cache off.
    "--no-proxy-server",
    f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {HOST}",
]
GLOSSARY = "docs/concepts/glossary.html"
# What readers look up, spelled as they may type it.
TERMS = (
    "MFU", "ttft", "KV cache", "bubble", "roofline", "ridge point", "arithmetic intensity", "PUE",
    "all-reduce", "prefill", "decode", "goodput", "MTBF", "ZeRO", "MoE", "1F1B", "itl", "token",
    "tensor parallelism", "time to first token",
)  # fmt: skip

DARK = "document.body.classList.contains('quarto-dark')"
DESK: ViewportSize = {"width": 1280, "height": 720}
PHONE: ViewportSize = {"width": 390, "height": 844}


def chromium() -> str | None:
    """The program named by $CHROMIUM, or one on the PATH."""
    names = (os.environ.get("CHROMIUM"), *NAMES)
    return next((found for name in names if name and (found := shutil.which(name))), None)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a built site while it is served on this machine."""
    server = Server((HOST, 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Visitor:
    """A tab that keeps what went wrong while it was used."""

    page: Page
    site: str
    troubles: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Note script errors, failed requests and requests to other hosts, which `FLAGS` block."""
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.troubles.append(f"script error: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._response)
        self.page.on("request", lambda request: self._address(request.url))
        self.page.on("websocket", lambda socket: self._address(socket.url))

    def open(self, path: str) -> Page:
        """Open a page of the site and wait until it has loaded."""
        self.troubles.clear()
        self.page.goto(f"{self.site}/{path}", wait_until="load")
        return self.page

    def _console(self, message: ConsoleMessage) -> None:
        # On a slow machine, a file may be fetched ahead of time long before it is used.
        early = "was preloaded using link preload" in message.text
        blocked = "registration blocked by Playwright" in message.text
        if message.type in {"error", "warning"} and not (early or blocked):
            self.troubles.append(f"console {message.type}: {message.text}")

    def _failed(self, request: Request) -> None:
        # Leaving a page aborts what it still loads, and the next page would be blamed for it.
        if request.failure != "net::ERR_ABORTED":
            self.troubles.append(f"request failed: {request.url}: {request.failure}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.troubles.append(f"answer {response.status}: {response.url}")

    def _address(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in {"http", "https", "ws", "wss"} and parts.hostname != HOST:
            self.troubles.append(f"request to another host: {url}")


def visitor(context: BrowserContext, site: str) -> Visitor:
    """A new tab, watched."""
    made = Visitor(context.new_page(), site)
    made.watch()
    return made


def tab(browser: Any, site: str, **options: Any) -> Iterator[Visitor]:
    # Requests that a service worker answers cannot be held up, which many tests do.
    options = {"service_workers": "block", **options}
    context = browser.new_context(reduced_motion="reduce", **options)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site)
    yield visitor(context, site)
    context.close()


def violations(page: Any, axe: str, within: str = "html", **options: Any) -> list[str]:
    """What axe finds in a part of a page, each with the element at fault."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    run = "([part, options]) => axe.run(part, options).then(r => r.violations)"
    found = page.evaluate(run, [within, {"resultTypes": ["violations"]} | options])
    return [
        f"{item['id']} ({item['impact']}): {item['help']}: {node['html'][:120]}"
        for item in found
        for node in item["nodes"][:3]
    ]


def toggle_theme(page: Any) -> None:
    """Press the button for the other theme and see it come."""
    before = page.evaluate(DARK)
    page.locator(".quarto-color-scheme-toggle").first.click()
    assert page.evaluate(DARK) != before
