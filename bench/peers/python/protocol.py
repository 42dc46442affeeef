"""The contestant's side of the protocol: see bench/src/contest/protocol.rs."""

import asyncio
import json
import os
import sys
import time

TASK = json.loads(sys.argv[1])
COUNT = TASK["count"]
TEXT = "x" * max(0, TASK["bytes"] - 30)
# Callers that enqueue at a rate, at most one message each at a time.
CALLERS = 64


def payload(number):
    return {"number": number, "text": TEXT}


async def ready():
    """Says that the setup is done, and waits for the start."""
    print(json.dumps({"ready": True}), flush=True)
    await asyncio.to_thread(sys.stdin.readline)


async def done(latencies_us=()):
    """Says that the part is done, and ends when the harness has read its counters."""
    print(json.dumps({"done": True, "latencies_us": list(latencies_us)}), flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    os._exit(0)  # Without a graceful end, which is not measured.


def bulks():
    """Splits the messages into calls of 1,000."""
    for first in range(0, COUNT, 1000):
        yield [payload(number) for number in range(first, min(COUNT, first + 1000))]


async def until(condition):
    while not await condition():
        await asyncio.sleep(0.001)


async def pickup(enqueue, starts):
    """Enqueues at the task's rate, open loop, and reports how late each message started; the handler fills `starts`."""
    await ready()
    begin, rate, numbers = time.perf_counter(), TASK["rate"], iter(range(COUNT))

    async def caller():
        for number in numbers:
            wait = begin + number / rate - time.perf_counter()
            if 0 < wait:
                await asyncio.sleep(wait)
            await enqueue(payload(number))

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    while len(starts) < COUNT:
        await asyncio.sleep(0.001)
    await done(max(0, at - begin - number / rate) * 1e6 for number, at in starts)
