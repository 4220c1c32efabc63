// A server that says what a test tells it to say. The page itself, and its headers, come from a real godwit (`page`).
import { createServer, request as httpRequest } from 'node:http';

export const words = (text) => text.match(/\s*\S+|\s+$/g) ?? [];
export const delta = (fields, rest = {}) => ({ model: 'fake-1', choices: [{ index: 0, delta: fields, finish_reason: null }], ...rest });
export const ending = (reason = 'stop') => ({ choices: [{ index: 0, delta: {}, finish_reason: reason }] });
export const figures = (prompt = 40, completion = 12, cached = 30) => ({
  choices: [],
  usage: { prompt_tokens: prompt, completion_tokens: completion, prompt_tokens_details: { cached_tokens: cached } },
  timings: { predicted_per_second: 42.5, prompt_per_second: 800, cache_n: cached },
  seed: 7,
});
// A whole answer as chunks.
export const says = (text) => [delta({ role: 'assistant', content: '' }), ...words(text).map((word) => delta({ content: word })), ending(), figures()];

export class FakeServer {
  constructor(page) {
    this.page = page; // origin of the real server
    this.requests = []; // bodies of the chats asked for
    this.headers = [];
    this.models = [{ id: 'fake-1', object: 'model', context_length: 4096, capabilities: ['completion'] }];
    this.key = '';
    this.isAlive = true;
    this.sockets = new Set();
    // answer(body, response, index): writes the stream. Tests replace it.
    this.answer = (body, stream) => stream.play(says('Hello there.'));
    this.server = createServer((request, response) => void this.handle(request, response));
    this.server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket));
    });
  }

  async start(port = 0) {
    await new Promise((done) => this.server.listen(port, '127.0.0.1', done));
    this.port = this.server.address().port;
    this.origin = `http://127.0.0.1:${this.port}`;
    return this;
  }

  // Breaks every connection and refuses new ones, as a server that was killed does.
  async kill() {
    const closed = new Promise((done) => this.server.close(done));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  async revive() {
    await new Promise((done) => this.server.listen(this.port, '127.0.0.1', done));
  }

  async handle(request, response) {
    const path = new URL(request.url, 'http://x').pathname;
    if (path === '/' || path.startsWith('/assets/')) return this.proxy(request, response);
    const json = (value, status = 200) => {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(value));
    };
    const error = (status, message, code = null) => json({ error: { message, type: 'error', param: null, code } }, status);
    if (path === '/health') return json({ status: 'ok' });
    if (this.key && request.headers.authorization !== `Bearer ${this.key}`) return error(401, 'an API key is needed', 'invalid_api_key');
    if (path === '/v1/models') return json({ object: 'list', data: this.models });
    if (path !== '/v1/chat/completions') return error(404, `there is nothing at ${path}`);
    let raw = '';
    for await (const piece of request) raw += piece;
    const body = JSON.parse(raw);
    this.requests.push(body);
    await this.answer(body, new Stream(response, error), this.requests.length - 1);
  }

  proxy(request, response) {
    const onward = httpRequest(this.page + request.url, { method: request.method, headers: { ...request.headers, host: 'localhost' } }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  }
}

export class Stream {
  constructor(response, error) {
    this.response = response;
    this.error = error;
    this.isClosed = false;
    response.on('close', () => (this.isClosed = true));
  }
  open() {
    if (!this.response.headersSent) this.response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' });
  }
  send(value) {
    this.open();
    this.response.write(`data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`);
  }
  // Sends chunks, `pause` milliseconds between two, and [DONE].
  async play(chunks, pause = 0) {
    for (const chunk of chunks) {
      if (this.isClosed) return;
      this.send(chunk);
      if (pause) await new Promise((done) => setTimeout(done, pause));
    }
    this.send('[DONE]');
    this.response.end();
  }
  break() {
    this.response.destroy();
  }
}
