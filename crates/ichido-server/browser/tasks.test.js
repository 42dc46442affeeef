// What a person on call does, in a real browser, against the real server.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { IS_WHOLE, layoutShifts, on, Stage, until, untilText, watchReload } from './stage.js';

const UNKNOWN_SYMBOL = { status: 400, body: { error: 'unknown symbol "USDJPX"' } };
const DOWN = { status: 503, body: { error: 'the exchange is closed for maintenance' } };
const order = (symbol) => ({ symbol, intent: 'buy', qty: '10' });
const orders = (from, count, symbol = 'ACME') => Array.from({ length: count }, (_, at) => ({ key: `order-${from + at}`, body: order(symbol) }));

/** The total of a state on the overview. */
const total = async (page, name) => {
  const text = await page.textContent(`#totals div:has(.cap:text-is("${name}")) dd`);
  return Number(text.replaceAll(/\D/g, ''));
};

/** Waits until nothing changes in the queues any more. */
const untilQuiet = (stage, queue) =>
  until(`${queue} is quiet`, async () => {
    const { queued = 0, sending = 0, failed = 0 } = await stage.counts(queue);
    return queued + sending + failed === 0;
  });

test('the overview is live while messages flow', on('sqlite', async (stage) => {
  await stage.sendAll('orders', orders(0, 5));
  await stage.untilCounts('orders', { sent: 5 });
  const page = await stage.tab('/');
  const assertSame = await watchReload(page);
  await untilText(page, '#verdict h1', /Healthy/);
  for (let round = 1; round <= 3; round++) {
    stage.receiver.hold();
    await stage.sendAll('orders', orders(round * 100, 20));
    await until('messages are in flight on the page', async () => (await total(page, 'sending')) > 0);
    stage.receiver.release();
    await until('all are sent on the page', async () => (await total(page, 'sent')) === 5 + round * 20);
  }
  // The numbers of the last minutes fall although nothing happens: the page asks again.
  await page.waitForRequest((request) => 'ichido-refresh' in request.headers());
  if (IS_WHOLE) await untilText(page, '#verdict h1', /idle/, 180_000);
  await assertSame();
  assert.deepEqual(await layoutShifts(page), [], 'numbers change in place');
  // Every number is a link to its rows.
  await page.click('#totals div:has(.cap:text-is("sent")) a');
  assert.equal(new URL(page.url()).searchParams.get('q'), 'state:sent');
  assert.equal(await page.locator('tbody[data-rows] tr').count(), 50);
}));

test('a dead letter is found, read, requeued after the repair, and seen as sent', on('sqlite', async (stage) => {
  stage.receiver.break(({ body }) => (body.symbol === 'USDJPY' ? DOWN : body.symbol === 'USDJPX' ? UNKNOWN_SYMBOL : null));
  await stage.sendAll('orders', [...orders(0, 30), ...orders(30, 3, 'USDJPX'), ...orders(33, 1, 'USDJPY')]);
  await untilQuiet(stage, 'orders');
  await stage.untilGrouped('orders', 3);
  const page = await stage.tab('/');
  // The overview says what is wrong, and leads to the dead letters.
  await page.click('#needs a:has-text("unknown symbol")');
  await page.waitForURL(/\/dead-letters\/groups\//);
  assert.equal(await page.locator('tbody[data-rows] tr').count(), 3, 'one cause, three messages');
  await page.goto(`${stage.url}/messages`);
  await page.fill('#q', 'queue:orders state:dead code:BROKER_5XX payload./symbol:USDJPY');
  await page.press('#q', 'Enter');
  await page.waitForURL(/q=/);
  assert.equal(await page.locator('tbody[data-rows] tr').count(), 1);
  // The filter is in the address: back and forward keep it.
  await page.click('.chips a >> nth=0');
  await page.goBack();
  assert.equal(await page.inputValue('#q'), 'queue:orders state:dead code:BROKER_5XX payload./symbol:USDJPY');
  await page.click('tbody[data-rows] tr a');
  assert.match(await page.textContent('#timeline'), /503 Service Unavailable: .*the exchange is closed for maintenance/);
  // 503 does not prove that nothing was done. The receiver deduplicates by key, so a requeue is safe.
  assert.equal(await page.textContent('#done .word'), 'Not known yet');
  assert.match(await page.textContent('#payload'), /USDJPY/);
  // The cause is repaired, and the message is requeued while the receiver takes its time.
  stage.receiver.repair();
  stage.receiver.hold();
  await page.click('summary:has-text("Requeue")');
  await page.fill('form[action$="/requeue"] [name=reason]', 'the exchange is open again');
  await page.click('form[action$="/requeue"] button');
  await page.waitForURL(/did=requeue/);
  const assertSame = await watchReload(page);
  await untilText(page, '#state', /sending/);
  stage.receiver.release();
  await untilText(page, '#state', /sent/);
  await untilText(page, '#done .word', /^Yes$/);
  assert.match(await page.textContent('#done'), /ord-\d+/);
  assert.match(await untilText(page, '#timeline', /accepted/), /the exchange is open again/);
  await assertSame();
  assert.equal(stage.receiver.effects.get('order-33').count, 1);
}));

test('a parked message is decided', on('postgres', async (stage) => {
  stage.receiver.break(() => 'cut');
  const id = await stage.send('payments', 'payment-1', { amount: '12.50', to: 'ann' });
  await stage.untilCounts('payments', { parked: 1 });
  const page = await stage.tab('/');
  await untilText(page, '#needs', /unknown effect: 1/);
  await page.click('#needs a[href="/dead-letters?state=parked"]');
  await page.click('tbody[data-rows] tr a');
  await page.waitForURL(new RegExp(`/messages/${id}`));
  assert.equal(await page.textContent('#done .word'), 'Not known yet');
  await page.check('input[value=done]');
  await page.fill('form[action$="/decide"] [name=reason]', 'the bank shows the transfer');
  await page.click('form[action$="/decide"] button');
  await page.waitForURL(/did=decide/);
  await untilText(page, '#state', /sent/);
  assert.equal(await page.textContent('#done .word'), 'Yes');
  assert.match(await page.textContent('#timeline'), /the bank shows the transfer/);
  const [effect] = stage.receiver.effects.values();
  assert.equal(effect.count, 1);
}));

test('a viewer sees everything and changes nothing', on('sqlite', async (stage) => {
  stage.receiver.break(({ path }) => (path === '/payments' ? 'cut' : UNKNOWN_SYMBOL));
  const dead = await stage.send('orders', 'order-1', order('USDJPX'));
  const parked = await stage.send('payments', 'payment-1', order('ACME'));
  await stage.untilCounts('orders', { dead: 1 });
  await stage.untilCounts('payments', { parked: 1 });
  const page = await stage.signedIn('viewer');
  const forms = () => page.$$eval('form[method=post]', (found) => found.map((form) => new URL(form.action).pathname));
  for (const path of ['/', '/messages', `/messages/${dead}`, `/messages/${parked}`, '/dead-letters', '/queues', '/alerts', '/nodes', '/help']) {
    const answer = await page.goto(stage.url + path);
    assert.equal(answer.status(), 200, path);
    assert.deepEqual(await forms(), ['/language', '/sign-out'], path);
  }
  // Nor does a form that somebody makes up.
  for (const path of [`/messages/${dead}/requeue`, `/messages/${dead}/discard`, `/messages/${parked}/decide`, '/queues/orders/pause']) {
    const status = await page.evaluate(async (path) => (await fetch(path, { method: 'POST', body: new URLSearchParams({ decision: 'done', reason: 'because' }) })).status, path);
    assert.equal(status, 403, path);
  }
  await stage.untilCounts('orders', { dead: 1 });
  await stage.untilCounts('payments', { parked: 1 });
  // The same pages have the forms for an operator.
  const operator = await stage.signedIn('operator', `/messages/${dead}`);
  assert.ok(await operator.$('form[action$="/requeue"]'));
}, { roles: ['admin', 'viewer', 'operator'] }));

test('a script in a payload, a key, an error and a filter stays text', async (t) => {
  const stage = await Stage.start(t, 'sqlite');
  const evil = '<script>window.isBroken = true</script><img src=x onerror="window.isBroken = true">';
  stage.receiver.break(() => ({ status: 400, body: `${evil} is not a symbol` }));
  const id = await stage.send('orders', `"><script>window.isBroken=1</script>`.replaceAll('"', "'"), { symbol: evil, '</pre><script>': evil });
  await stage.untilCounts('orders', { dead: 1 });
  for (const path of [`/messages/${id}`, '/messages', '/dead-letters', '/', `/messages?q=${encodeURIComponent(`code:"${evil}"`)}`, `/messages?q=${encodeURIComponent(evil)}`]) {
    const page = await stage.tab(path);
    assert.equal(await page.evaluate(() => window.isBroken), undefined, path);
    assert.equal(await page.$$eval('script:not([src]), img[src=x]', (found) => found.length), 0, path);
    if (path === `/messages/${id}`) {
      assert.match(await page.textContent('#payload'), /<script>window\.isBroken = true<\/script><img src=x onerror=/);
      assert.match(await page.textContent('#timeline'), /<img src=x onerror=.* is not a symbol/);
    }
    await page.close();
  }
});

test('the three tasks are done by keyboard alone', on('sqlite', async (stage) => {
  stage.receiver.break(({ path }) => (path === '/payments' ? 'cut' : UNKNOWN_SYMBOL));
  const dead = await stage.send('orders', 'order-1', order('USDJPX'));
  const parked = await stage.send('payments', 'payment-1', order('ACME'));
  await stage.untilCounts('orders', { dead: 1 });
  await stage.untilCounts('payments', { parked: 1 });
  await stage.untilGrouped('orders', 1);
  const page = await stage.tab('/');
  await page.waitForURL(/sign-in/);
  const { keyboard } = page;
  const focused = () => page.evaluate(() => (document.activeElement === document.body ? '' : document.activeElement.textContent || document.activeElement.name));
  /** Presses Tab until this has the focus. */
  const tabTo = async (what, pattern) => {
    for (let presses = 0; presses < 60; presses++) {
      if (pattern.test(await focused())) return;
      await keyboard.press('Tab');
    }
    assert.fail(`Tab never came to: ${what}`);
  };
  // Sign in: the field has the focus, a moment after the page was loaded.
  await page.waitForSelector('input[name=token]:focus');
  await keyboard.type(stage.tokens.operator);
  await keyboard.press('Enter');
  await page.waitForURL(`${stage.url}/`);
  // 1. Is it healthy? The first sentence says so.
  await untilText(page, '#verdict h1', /need/);
  // 2. What is broken, since when and why?
  await keyboard.press('g');
  await keyboard.press('d');
  await page.waitForURL(/dead-letters/);
  await page.waitForSelector('#found a:has-text("unknown symbol")');
  await tabTo('the cause', /unknown symbol/);
  await keyboard.press('Enter');
  await page.waitForURL(/groups/);
  await keyboard.press('j');
  await keyboard.press('Enter');
  await page.waitForURL(new RegExp(`/messages/${dead}`));
  assert.match(await page.textContent('#timeline'), /unknown symbol/);
  // 3. What do I press, and what happens then? The form says it before the button.
  stage.receiver.repair();
  await tabTo('the action', /^Requeue…$/);
  await keyboard.press('Enter');
  await page.waitForSelector('details[open] form[action$="/requeue"] button');
  assert.match(await page.textContent('details[open] form[action$="/requeue"]'), /sent again with the same body and key/);
  await tabTo('the button', /^Requeue this message$/);
  await keyboard.press('Enter');
  await page.waitForURL(/did=requeue/);
  await untilText(page, '#state', /sent/);
  // The parked one too: radio buttons are chosen with the arrows.
  await page.goto(`${stage.url}/dead-letters?state=parked`);
  await keyboard.press('j');
  await keyboard.press('Enter');
  await page.waitForURL(new RegExp(`/messages/${parked}`));
  await tabTo('the decision', /^decision$/);
  await keyboard.press('ArrowDown');
  await keyboard.press('ArrowUp');
  await tabTo('the button', /^Record this decision$/);
  await keyboard.press('Enter');
  await page.waitForURL(/did=decide/);
  await untilText(page, '#state', /sent/);
}, { roles: ['admin', 'operator'] }));
