// Fills a store with what a broker sees on a bad day: orders that went through, three kinds of failures, and payments of unknown effect.
import { until } from './stage.js';

const SYMBOLS = ['ACME', 'GLOBEX', 'INITECH', 'HOOLI', 'STARK', 'WAYNE'];
/** An order of a made-up customer; `rest` replaces members. */
export const order = (at, rest = {}) => ({
  symbol: SYMBOLS[at % SYMBOLS.length], intent: at % 3 === 0 ? 'sell' : 'buy', qty: String(10 + (at % 40) * 5), account: `A-${2200 + (at % 7)}`, ...rest,
});

/** The accounts whose payments take effect although the bank reports an error. One of them it cannot look up later, either. */
const PAYMENTS = {
  lost: { status: 500, body: { error: 'ledger timeout, state of the transfer is not known' }, hasEffect: true, isSilent: true },
  late: { status: 500, body: { error: 'ledger timeout, state of the transfer is not known' }, hasEffect: true },
};

/** How the receiver fails: by what is in the order. */
function fails({ path, body }) {
  if (path.startsWith('/v1/chat')) return null;
  if (path.startsWith('/payments') || path.startsWith('/transfers')) return PAYMENTS[body.to] ?? null;
  if (body.symbol === 'ACMEE') return { status: 400, body: { error: 'unknown symbol "ACMEE"', hint: 'did you mean ACME?' } };
  if (body.symbol === 'TSE:7203') return { status: 503, body: { error: 'exchange TSE is closed for maintenance' } };
  if (body.account === 'A-9999') return { status: 403, body: { error: 'account A-9999 is suspended' } };
  return null;
}

/** A name that hardly fits. */
export const LONG_QUEUE = 'settlements-of-the-previous-trading-day';
const HOPS = ['browser_to_bff', 'bff_to_gateway', 'gateway_to_adapter', 'adapter_to_external'];

/** Settings of a server to fill: queues whose retries wait long, whose name hardly fits, and whose destination is a model; boundary files. */
export const MORE = `
[serve]
boundaries = ${JSON.stringify(HOPS.map((hop) => `boundaries/${hop}.json`))}
[queues.mail]
destination = "broker"
retry = { waits = ["10m"] }
[queues.${LONG_QUEUE}]
destination = "broker"
[destinations.analyst]
kind = "openai"
model = "gpt-5-mini"
base_urls = ["RECEIVER/v1"]
prompt = "Summarise the news about {/symbol} in two sentences."
answers_to = "summaries"
[queues.questions]
destination = "analyst"
[queues.summaries]
destination = "broker"
`;

/** The longest words that a page must not let stick out. */
const LONG = 'x'.repeat(200);

/** Fills the store, and returns the ids of messages by state. */
export async function fill(stage, { count = 60, long = LONG, longQueue = LONG_QUEUE } = {}) {
  stage.receiver.break(fails);
  const lines = Array.from({ length: count }, (_, at) => ({ key: `order-${5200 + at}`, body: order(at) }));
  await stage.sendAll('orders', lines);
  await stage.untilCounts('orders', { sent: count });
  const failures = [
    ...Array.from({ length: 7 }, (_, at) => ({ key: `order-${5300 + at}`, body: order(at, { symbol: 'ACMEE' }) })),
    ...Array.from({ length: 4 }, (_, at) => ({ key: `order-${5400 + at}`, body: order(at, { symbol: 'TSE:7203' }) })),
    ...Array.from({ length: 2 }, (_, at) => ({ key: `order-${5500 + at}`, body: order(at, { account: 'A-9999' }) })),
    { key: `order-${long}`, body: order(8, { symbol: 'ACMEE', note: long, client_order: 9007199254740993 }) },
  ];
  await stage.sendAll('orders', failures);
  const parked = await stage.send('payments', 'payment-881', { amount: '1250.00', currency: 'EUR', to: 'lost', order: 'order-5203' });
  await stage.sendAll('payments', Array.from({ length: 9 }, (_, at) => ({ key: `payment-${870 + at}`, body: { amount: `${at + 1}0.00`, to: 'ann' } })));
  const failed = await stage.send('mail', 'welcome-dave', order(0, { symbol: 'TSE:7203' }));
  await stage.untilCounts('orders', { dead: failures.length });
  await stage.untilCounts('payments', { parked: 1, sent: 9 });
  await stage.untilCounts('mail', { failed: 1 });
  await stage.sendAll('questions', SYMBOLS.map((symbol) => ({ key: `news-${symbol}`, body: { symbol } })));
  await transfers(stage);
  // Paused, with a message that waits.
  await stage.api('POST', `/v1/queues/${longQueue}/pause`);
  const queued = await stage.send(longQueue, 'settlement-2026-11-17', order(3));
  const [sent, dead] = await Promise.all(['order-5203', 'order-5400'].map((key) => one(stage, key)));
  return { sent, dead, parked, failed, queued, ...(await groupAndOperation(stage)) };
}

/** The ids of a failure group, and of a bulk operation on it that its canary halted. The worker folds failures into groups after seconds. */
async function groupAndOperation(stage) {
  const { id: group } = await stage.untilGrouped('orders', 4);
  const body = JSON.stringify({ action: 'requeue', filter: { group }, canary: true, reason: 'the exchange is open again' });
  const { operation } = await stage.api('POST', '/v1/operations', body, { 'content-type': 'application/json' });
  await until('the canary halts', async () => (await stage.api('GET', `/v1/operations/${operation.id}`)).state === 'halted');
  return { group, operation: operation.id };
}

/** Requests through an adapter on the same store: one with replays, and one whose outcome nobody knows. */
async function transfers(stage) {
  const url = await stage.startAdapter('POST /transfers');
  const transfer = async (key, body) => {
    const headers = { 'content-type': 'application/json', 'idempotency-key': key };
    await fetch(`${url}/transfers`, { method: 'POST', headers, body: JSON.stringify(body) }).then((answer) => answer.text());
  };
  for (let press = 0; press < 3; press++) await transfer('transfer-310', { amount: '75.00', to: 'ann' });
  await transfer('transfer-311', { amount: '900.00', to: 'lost' });
}

async function one(stage, key) {
  const { messages } = await stage.api('GET', `/v1/messages?queue=orders&key=${key}`);
  return messages[0].id;
}

/** The alerts that this store raises, some seconds after their causes. */
const ALERTS = ['dead_letter', 'dead_letters', 'dead_surge', 'parked'];

/** Waits until all of them have fired. */
export const untilAlerts = (stage) =>
  until('the alerts have fired', async () => {
    const { alerts } = await stage.api('GET', '/v1/alerts');
    return ALERTS.every((rule) => alerts.some((alert) => alert.rule === rule));
  });
