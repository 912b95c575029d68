"""Follow what happens to a resource of the gateway and to those below it, on asyncio.

python tree_follow.py ws://127.0.0.1:8080/tree /call

Prints a line for each change and each event: its kind, the path and what the resource holds.  It
connects again when the connection is lost, and then prints what it has missed.
"""

import asyncio
import json
import sys

from p2psip.errors import RemoteError
from siprtmp.edge.web.tree_asyncio import AsyncTreeClient
from siprtmp.web.resources.client import Notification


async def follow(url: str, path: str) -> None:
    news: asyncio.Queue[Notification] = asyncio.Queue()
    async with AsyncTreeClient(url) as tree:
        await tree.subscribe(path, news.put_nowait)
        names = await tree.get(path, view="children")
        print(f"{path} has {len(names)} below it: {' '.join(sorted(names))}", flush=True)
        while True:
            each = await news.get()
            where = f"{path.rstrip('/')}/{each.child}" if each.child else path
            print(each.kind, where, json.dumps(each.entity), flush=True)


try:
    asyncio.run(follow(*sys.argv[1:]))
except (OSError, RemoteError) as error:
    sys.exit(f"not followed: {error}")
except KeyboardInterrupt:
    pass
