// A server between the browser and the real server: it serves the page, forwards requests, and fails on command.
import { EventEmitter, once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, request as send } from 'node:http';
import { basename } from 'node:path';

const MODULES = new URL('../../', import.meta.url);
const PAGES = new URL('./pages/', import.meta.url);
const TYPES = { js: 'text/javascript', html: 'text/html' };
/** Headers of one connection, or about a page that the server does not know. */
const NOT_PASSED_ON = ['connection', 'host', 'origin', 'referer'];

/**
 * How to treat an action. A held one waits for `front.release()`.
 * - `pass`; `refuse`: cut the connection and forward nothing; `drop`: forward it and lose the response
 * - `hold`: wait before forwarding; `hold answer`: forward it and hold the response
 * - `{ status, headers }`: send this response and forward nothing
 */
export class Front extends EventEmitter {
  constructor() {
    super();
    /** How the next actions are treated, in order; then `usual`, which may be a function of the attempt number. */
    this.ways = [];
    this.usual = 'pass';
    /** Every received action. */
    this.actions = [];
    /** Additional files by path. */
    this.files = new Map();
    this.upstream = null;
    this.keepsConnections = false;
    this.held = [];
    this.server = createServer((request, response) => {
      // A browser retries automatically if a reused connection breaks; on a new connection it reports the error.
      response.shouldKeepAlive = this.keepsConnections;
      for (const [name, value] of Object.entries(this.cors ?? {})) response.setHeader(name, value);
      this.#treat(request, response).catch((error) => {
        this.faults.push(error);
        response.destroy();
      });
    });
    /** CORS headers; `null` means none. */
    this.cors = null;
    /** Errors of the front; a test fails if there is one. */
    this.faults = [];
  }

  async listen() {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = this.server.address().port;
    // `localhost` is a secure context, like https.
    this.url = `http://localhost:${this.port}`;
  }

  close() {
    this.release();
    this.server.closeAllConnections();
    this.server.close();
  }

  /** Waits until this many actions were received. */
  async came(count) {
    while (this.actions.length < count) await once(this, 'action');
    return this.actions;
  }

  release() {
    for (const go of this.held.splice(0)) go();
  }

  async #treat(request, response) {
    if (request.method === 'GET' && !request.url.startsWith('/v1/')) return this.#file(request, response);
    if (request.method === 'OPTIONS') return give(response, { status: 204, body: '' });
    const body = Buffer.concat(await request.toArray());
    if (request.method === 'GET') return this.#pass(request, body, (answer) => give(response, answer));
    const { headers } = request;
    const action = { key: headers['idempotency-key'], number: headers['ichido-attempt'], hops: headers['ichido-hops'], headers, body: body.toString(), isCut: false, status: null };
    response.on('close', () => (action.isCut = !response.writableFinished));
    this.actions.push(action);
    const usual = typeof this.usual === 'function' ? this.usual(Number.parseInt(action.number, 10)) : this.usual;
    const way = this.ways.shift() ?? usual;
    this.emit('action', action);
    if (way === 'refuse') return response.destroy();
    if (typeof way === 'object') return give(response, { body: '', ...way });
    if (way === 'hold') await this.#hold();
    await this.#pass(request, body, async (answer) => {
      action.status = answer.status;
      this.emit('passed', action);
      if (way === 'hold answer') await this.#hold();
      if (way === 'drop') response.destroy();
      else give(response, answer);
    });
  }

  #hold() {
    return new Promise((go) => this.held.push(go));
  }

  /** If the server is down, cuts the connection like a broken network. */
  async #pass(request, body, tell) {
    const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !NOT_PASSED_ON.includes(name) && !name.startsWith('sec-')));
    const passed = send({ host: '127.0.0.1', port: this.upstream, path: request.url, method: request.method, headers, agent: false });
    passed.end(body);
    let answer;
    try {
      const [response] = await once(passed, 'response');
      answer = { status: response.statusCode, headers: response.headers, body: Buffer.concat(await response.toArray()) };
    } catch {
      return request.socket.destroy();
    }
    await tell(answer);
  }

  async #file(request, response) {
    const path = new URL(request.url, this.url).pathname;
    const name = basename(path) || 'page.html';
    const type = TYPES[name.split('.').at(-1)] ?? 'text/plain';
    const text = this.files.get(path) ?? (await readFile(new URL(name, PAGES)).catch(() => readFile(new URL(name, MODULES)).catch(() => null)));
    if (text === null) return give(response, { status: 404, headers: {}, body: '' });
    give(response, { status: 200, headers: { 'content-type': type, 'cache-control': 'no-store' }, body: text });
  }
}

function give(response, { status, headers = {}, body }) {
  const { connection, 'transfer-encoding': _, ...fields } = headers;
  response.writeHead(status, { ...fields, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}
