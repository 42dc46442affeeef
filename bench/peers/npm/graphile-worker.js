// graphile-worker: the settings of its own benchmark (perfTest/graphile.config.js), with a larger local queue, which was faster
// here. Pickups have the same settings: without a local queue they were not faster.
//
// https://github.com/graphile/worker/blob/main/perfTest/graphile.config.js
// https://worker.graphile.org/docs/performance
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { bulks, done, payload, pickup, ready, sleep, task } from "./protocol.js";

const TASK = "orders";
const CONCURRENT_JOBS = 24;
const logger = new Logger(() => () => {});
const connectionString = task.url;
const utils = await makeWorkerUtils({ connectionString, logger, maxPoolSize: CONCURRENT_JOBS + 1 });
await utils.migrate();

const start = (handler) =>
  run({
    taskList: { [TASK]: handler },
    noHandleSignals: true,
    preset: {
      worker: {
        connectionString,
        logger,
        concurrentJobs: CONCURRENT_JOBS,
        maxPoolSize: CONCURRENT_JOBS + 1,
        localQueue: { size: 5000, refetchDelay: { durationMs: 10 } },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
  });

const parts = {
  async "enqueue-one"() {
    await ready();
    for (let number = 0; number < task.count; number++) await utils.addJob(TASK, payload(number));
    await done();
  },
  async "enqueue-bulk"() {
    await ready();
    for (const bulk of bulks()) await utils.addJobs(bulk.map((payload) => ({ identifier: TASK, payload })));
    await done();
  },
  async drain() {
    await ready();
    let count = 0;
    await start(async () => void count++);
    while (count < task.count) await sleep(1);
    // All have run; done when the last completion is written.
    const left = "SELECT EXISTS (SELECT FROM graphile_worker._private_jobs) AS left";
    while (await utils.withPgClient(async (client) => (await client.query(left)).rows[0].left)) await sleep(1);
    await done();
  },
  async pickup() {
    const starts = [];
    await start(async ({ number }) => void starts.push([number, performance.now()]));
    await pickup((data) => utils.addJob(TASK, data), starts);
  },
};
await parts[task.part]();
