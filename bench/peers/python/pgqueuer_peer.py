"""pgqueuer: asyncpg and uvloop as in its own benchmark, with larger batches, which its guide advises for throughput.

https://github.com/janbjorge/pgqueuer/blob/main/tools/benchmark.py
https://pgqueuer.readthedocs.io/
"""

import asyncio
import json
import logging
import time

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.queries import Queries
from protocol import COUNT, TASK, bulks, done, payload, pickup, ready, until

BATCH_SIZE = 500 if TASK["part"] == "drain" else 100
logging.disable(logging.INFO)
starts = []


def encoded(data):
    return json.dumps(data).encode()


async def worker():
    queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(dsn=TASK["url"])))

    @queuer.entrypoint("orders")
    async def order(job):
        starts.append((json.loads(job.payload)["number"], time.perf_counter()))

    return asyncio.create_task(queuer.run(batch_size=BATCH_SIZE))


async def main():
    async with asyncpg.create_pool(dsn=TASK["url"], min_size=4, max_size=20) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))
        if not await queries.has_table("pgqueuer"):
            await queries.install()

        async def is_drained():
            """All have run; done when the last completion is written."""
            return COUNT <= len(starts) and not await pool.fetchval("SELECT EXISTS (SELECT FROM pgqueuer)")

        match TASK["part"]:
            case "enqueue-one":
                await ready()
                for number in range(COUNT):
                    await queries.enqueue("orders", encoded(payload(number)))
                await done()
            case "enqueue-bulk":
                await ready()
                for bulk in bulks():
                    await queries.enqueue(["orders"] * len(bulk), [encoded(data) for data in bulk], [0] * len(bulk))
                await done()
            case "drain":
                await ready()
                running = await worker()  # noqa: F841, a task without a reference may vanish
                await until(is_drained)
                await done()
            case "pickup":
                running = await worker()  # noqa: F841, a task without a reference may vanish
                # Its listener is in place.
                await asyncio.sleep(0.5)
                await pickup(lambda data: queries.enqueue("orders", encoded(data)), starts)


uvloop.run(main())
