"""procrastinate: one asynchronous worker with a high concurrency, as its guide on concurrency says; notifications on.

https://procrastinate.readthedocs.io/en/stable/howto/basics/worker.html
"""

import asyncio
import logging
import time

import procrastinate
from protocol import COUNT, TASK, bulks, done, payload, pickup, ready, until

CONCURRENCY = 30
logging.disable(logging.INFO)
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=TASK["url"], min_size=4, max_size=20))
starts = []


@app.task(queue="orders")
async def order(number, text):
    starts.append((number, time.perf_counter()))


async def has_tables():
    found = await app.connector.execute_query_one_async("SELECT to_regclass('procrastinate_jobs') IS NOT NULL AS found")
    return found["found"]


async def is_drained():
    """All have run; done when the last completion is written."""
    if len(starts) < COUNT:
        return False
    left = "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing')) AS left"
    return not (await app.connector.execute_query_one_async(left))["left"]


async def main():
    async with app.open_async():
        if not await has_tables():
            await app.schema_manager.apply_schema_async()
        worker = lambda: asyncio.create_task(  # noqa: E731
            app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=False)
        )
        match TASK["part"]:
            case "enqueue-one":
                await ready()
                for number in range(COUNT):
                    await order.defer_async(**payload(number))
                await done()
            case "enqueue-bulk":
                await ready()
                for bulk in bulks():
                    await order.batch_defer_async(*bulk)
                await done()
            case "drain":
                await ready()
                running = worker()  # noqa: F841, a task without a reference may vanish
                await until(is_drained)
                await done()
            case "pickup":
                running = worker()  # noqa: F841, a task without a reference may vanish
                # Its listener is in place.
                await asyncio.sleep(0.5)
                await pickup(lambda data: order.defer_async(**data), starts)


asyncio.run(main())
