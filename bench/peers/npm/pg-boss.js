// pg-boss: large batches, refetched at once while they are full; notifications for pickups (its guide on workers).
//
// https://github.com/timgit/pg-boss/blob/12.35.0/docs/api/workers.md
import { PgBoss } from "pg-boss";
import { bulks, done, payload, pickup, ready, sleep, task } from "./protocol.js";

const QUEUE = "orders";
const isPickup = task.part === "pickup";
const boss = new PgBoss({
  connectionString: task.url,
  max: 20,
  useListenNotify: isPickup,
  // Its upkeep would only disturb a run of seconds.
  supervise: false,
  schedule: false,
});
boss.on("error", console.error);
await boss.start();
await boss.createQueue(QUEUE, { notify: isPickup });

const parts = {
  async "enqueue-one"() {
    await ready();
    for (let number = 0; number < task.count; number++) await boss.send(QUEUE, payload(number));
    await done();
  },
  async "enqueue-bulk"() {
    await ready();
    for (const bulk of bulks()) await boss.insert(QUEUE, bulk.map((data) => ({ data })));
    await done();
  },
  async drain() {
    await ready();
    let count = 0;
    const options = { batchSize: 5000, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, localConcurrency: 2 };
    await boss.work(QUEUE, options, async (jobs) => {
      count += jobs.length;
    });
    while (count < task.count) await sleep(1);
    // All have run; done when the last completion is written.
    const left = "SELECT EXISTS (SELECT FROM pgboss.job WHERE state < 'completed') AS left";
    while ((await boss.getDb().executeSql(left)).rows[0].left) await sleep(1);
    await done();
  },
  async pickup() {
    const starts = [];
    const options = { batchSize: 100, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, localConcurrency: 4 };
    await boss.work(QUEUE, options, async (jobs) => {
      const at = performance.now();
      for (const job of jobs) starts.push([job.data.number, at]);
    });
    await pickup((data) => boss.send(QUEUE, data), starts);
  },
};
await parts[task.part]();
