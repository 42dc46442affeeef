// A receiver of messages that a test breaks and repairs while it runs.
import { once } from 'node:events';
import { createServer } from 'node:http';

/** What the receiver says to an order that it accepts. */
const accepted = (order) => ({ status: 200, body: { order_id: order, status: 'accepted' } });

/** What it says as a language model. */
const CHAT = '/v1/chat/completions';
const answered = {
  status: 200,
  body: {
    id: 'chat-1', object: 'chat.completion', model: 'gpt-5-mini',
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Earnings beat expectations. The outlook is unchanged.' } }],
    usage: { prompt_tokens: 180, completion_tokens: 24, total_tokens: 204 },
  },
};

export class Receiver {
  constructor() {
    /** The effects of each key: the tests' proof of exactly-once. */
    this.effects = new Map();
    this.repair();
    this.server = createServer((request, response) => void this.#serve(request, response));
  }

  async listen() {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.url = `http://127.0.0.1:${this.server.address().port}`;
  }

  /** Accepts every order at once. */
  repair() {
    this.answer = () => null;
    this.release();
  }

  /**
   * Breaks it: `answer` gets an order and returns a response, `'cut'` to lose the response after the effect, or null to accept. A response
   * with `hasEffect` comes after the effect, and one with `isSilent` also hides it from those who ask by key.
   */
  break(answer) {
    this.answer = answer;
  }

  /** Lets every call wait until `release`. */
  hold() {
    this.gate ??= gate();
  }

  release() {
    this.gate?.resolve();
    this.gate = null;
  }

  close() {
    this.release();
    this.server.closeAllConnections();
    this.server.close();
  }

  async #serve(request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const send = ({ status, body }) => {
      const isText = typeof body === 'string';
      response.writeHead(status, { 'content-type': isText ? 'text/plain' : 'application/json' }).end(isText ? body : JSON.stringify(body));
    };
    const asked = /\/by-key\/(.+)$/.exec(request.url);
    if (asked) {
      const known = this.effects.get(decodeURIComponent(asked[1]));
      if (known?.isSilent) return send({ status: 503, body: { error: 'the archive is offline' } });
      return send(known ? accepted(known.order) : { status: 404, body: { error: 'no_such_order' } });
    }
    await this.gate?.promise;
    if (request.url === CHAT) return send(answered);
    const text = Buffer.concat(chunks).toString();
    const key = request.headers['idempotency-key'] ?? '';
    const failure = this.answer({ path: request.url, key, text, body: json(text) });
    if (failure !== null && failure !== 'cut' && !failure.hasEffect) return send(failure);
    const known = this.effects.get(key) ?? { order: `ord-${7000 + this.effects.size + 1}`, count: 0 };
    // A receiver that deduplicates: a repeated call has no further effect.
    if (known.count === 0 || !request.url.startsWith('/orders')) known.count += 1;
    known.isSilent = failure?.isSilent;
    this.effects.set(key, known);
    if (failure === 'cut') return request.socket.destroy();
    return send(failure ?? accepted(known.order));
  }
}

/** A promise with the function that resolves it. */
function gate() {
  let resolve;
  return { promise: new Promise((done) => (resolve = done)), resolve };
}

function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
