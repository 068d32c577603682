"""A page in a headless Chromium, driven over its DevTools protocol."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1000,700",
    "--remote-debugging-port=0",
]


def find() -> str | None:
    """The browser that CHUNKYARD_BROWSER names, or one that is installed."""
    names = [os.environ.get("CHUNKYARD_BROWSER"), "chromium", "chromium-browser", "google-chrome"]
    found = (shutil.which(name) for name in names if name)
    return next((path for path in found if path), None)


class Elsewhere(Exception):
    """The page went to another address while it was asked."""


class Page:
    """An open page."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse):
        self.socket, self.number = socket, 0

    async def evaluate(self, expression: str) -> object:
        """The value of an expression in the page, which may be a promise."""
        self.number += 1
        ask = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        await self.socket.send_json({"id": self.number, "method": "Runtime.evaluate", "params": ask})
        while True:
            answer = json.loads((await self.socket.receive()).data)
            if answer.get("id") != self.number:
                continue
            if "error" in answer:
                raise Elsewhere(answer["error"]["message"])
            result = answer["result"]
            assert "exceptionDetails" not in result, json.dumps(result, indent=1)
            return result["result"].get("value")


    async def until(self, expression: str) -> None:
        """Returns as soon as an expression is true, in the page that comes in the end."""
        while True:
            try:
                if await self.evaluate(expression) is True:
                    return
            except Elsewhere:
                pass
            await asyncio.sleep(0.05)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Page]:
    """Opens a page in a browser of its own, and ends both."""
    browser = find()
    assert browser is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [browser, *FLAGS, f"--user-data-dir={profile}", url]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        try:
            assert process.stderr is not None
            address = None
            while address is None:
                line = await asyncio.to_thread(process.stderr.readline)
                assert line, f"{browser} ended with {process.wait()}"
                address = re.search(r"DevTools listening on ws://([^/]+)/", line)
            drain = asyncio.create_task(asyncio.to_thread(process.stderr.read))
            async with aiohttp.ClientSession() as session:
                socket = await page_socket(session, address[1])
                # A megabyte of voxels comes as one message.
                async with session.ws_connect(socket, max_msg_size=0) as connection:
                    yield Page(connection)
        finally:
            process.terminate()
            process.wait(30)
        await drain


async def page_socket(session: aiohttp.ClientSession, address: str) -> str:
    """Where the page that was asked for is driven, as soon as there is one."""
    while True:
        async with session.get(f"http://{address}/json/list") as answer:
            pages = [page for page in await answer.json(content_type=None) if page["type"] == "page"]
        if pages:
            return pages[0]["webSocketDebuggerUrl"]
