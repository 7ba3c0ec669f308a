import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { resolveApiOptions, type PaymentsApiOptions } from './api-options.js';
import type { ConnectionPurpose } from './transport.js';
import type { HttpRequest } from './http-exchange.js';
import { Transport } from './transport.js';

const immediate = promisify(setImmediate);

describe.each(['undici', 'http'] as const)('connections with the adapter %s', (adapter) => {
  const cleanUp: (() => unknown)[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;

  beforeEach(() => {
    connections = 0;
  });

  afterEach(async () => {
    for (const action of cleanUp.splice(0).toReversed()) await action();
    sockets.clear();
  });

  async function listen(server: Server, port = 0): Promise<string> {
    server.on('connection', (socket: Socket) => {
      connections += 1;
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket)).on('error', () => {});
    });
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    cleanUp.push(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }

  /** A service that responds to its oldest open request when the test calls `respond()`. */
  async function manualService(): Promise<{
    url: string;
    /** Paths of the requests that arrived. */
    seen: string[];
    respond: () => void;
  }> {
    const seen: string[] = [];
    const open: http.ServerResponse[] = [];
    const server = http.createServer((request, response) => {
      seen.push(request.url!);
      open.push(response);
    });
    server.keepAliveTimeout = 0;
    return { url: await listen(server), seen, respond: () => open.shift()!.end('response') };
  }

  function transport(
    options: PaymentsApiOptions = {},
    purpose: ConnectionPurpose = 'calls',
  ): Transport {
    const made = new Transport(resolveApiOptions({ adapter, ...options }), purpose);
    cleanUp.push(() => made.close());
    return made;
  }

  const request = (url: string, more: Partial<HttpRequest> = {}): HttpRequest => ({
    method: 'POST',
    url,
    headers: {},
    signal: new AbortController().signal,
    maxBytes: 1_000_000,
    ...more,
  });

  async function until(condition: () => boolean): Promise<void> {
    while (!condition()) await immediate();
  }

  it('HT-28 the transport opens at most maxSockets connections to a host, and sends a waiting request when a connection is free', async () => {
    const { url, seen, respond } = await manualService();
    const calls = transport({ maxSockets: 2 });
    const results = Promise.all(['1', '2', '3'].map((path) => calls.send(request(url + path))));
    await until(() => seen.length === 2);
    respond();
    await until(() => seen.length === 3);
    respond();
    respond();
    expect(await results).toMatchObject([{ status: 200 }, { status: 200 }, { status: 200 }]);
    expect(connections).toBe(2);
  });

  it('HT-29 the transport does not send a request that was aborted while it waited for a connection', async () => {
    const { url, seen, respond } = await manualService();
    const calls = transport({ maxSockets: 1 });
    const abort = new AbortController();
    const first = calls.send(request(`${url}first`));
    await until(() => seen.length === 1);
    const aborted = calls.send(request(`${url}aborted`, { signal: abort.signal }));
    const last = calls.send(request(`${url}last`));
    await immediate();
    abort.abort();
    expect(await aborted).toMatchObject({ kind: 'failure', unsent: true });
    respond();
    await until(() => seen.length === 2);
    respond();
    expect(await Promise.all([first, last])).toMatchObject([{ status: 200 }, { status: 200 }]);
    expect(seen).toEqual(['/first', '/last']);
    expect(connections).toBe(1);
  });

  it('the transport opens new connections after the host refused all earlier connections', async () => {
    const gone = createServer();
    const url = await listen(gone);
    await new Promise((resolve) => gone.close(resolve));
    const calls = transport({ maxSockets: 4 });
    const refused = await Promise.all(Array.from({ length: 50 }, () => calls.send(request(url))));
    for (const result of refused)
      expect(result).toMatchObject({ unsent: true, errno: 'ECONNREFUSED' });
    await listen(
      http.createServer((_, response) => response.end('here')),
      Number(new URL(url).port),
    );
    const responses = await Promise.all(Array.from({ length: 50 }, () => calls.send(request(url))));
    for (const response of responses) expect(response).toMatchObject({ status: 200 });
    expect(connections).toBeLessThanOrEqual(4);
  });

  it('HT-24 the transport reports a request as unsent if it was aborted during the TLS handshake', async () => {
    const url = await listen(createServer((socket) => socket.resume()));
    const abort = new AbortController();
    const secure = url.replace('http:', 'https:');
    const result = transport().send(request(secure, { signal: abort.signal }));
    await until(() => connections === 1);
    abort.abort();
    expect(await result).toMatchObject({ kind: 'failure', unsent: true });
  });

  it('TK-20 close() of the transport closes used, idle and opening connections', async () => {
    const { url, seen, respond } = await manualService();
    const hanging = await listen(createServer((socket) => socket.resume()));
    // The timeout is longer than a test may take, so that the opening connection does not time out.
    const calls = transport({ attemptTimeoutMs: 300_000 });
    const idle = calls.send(request(url));
    await until(() => seen.length === 1);
    const used = calls.send(request(url));
    await until(() => seen.length === 2);
    respond();
    await idle;
    const opening = calls.send(request(hanging.replace('http:', 'https:')));
    await until(() => connections === 3);
    await calls.close();
    expect(await used).toMatchObject({ kind: 'failure', unsent: false });
    expect(await opening).toMatchObject({ kind: 'failure', unsent: true });
    await until(() => sockets.size === 0);
  });

  it('TK-20 close() of the transport opens no connection for calls that waited for one', async () => {
    const { url, seen } = await manualService();
    const calls = transport({ maxSockets: 1 });
    const abort = new AbortController();
    const send = () => calls.send(request(url, { signal: abort.signal }));
    const results = [send(), send(), send()];
    await until(() => seen.length === 1);
    abort.abort();
    await calls.close();
    expect(await Promise.all(results)).toMatchObject([
      { unsent: false },
      { unsent: true },
      { unsent: true },
    ]);
    await until(() => sockets.size === 0);
    // A connection that was opened now would be accepted before this one.
    const last = transport();
    const sent = last.send(request(url));
    await until(() => seen.length === 2);
    expect(connections).toBe(2);
    await last.close();
    await sent;
  });

  it('TK-14 the transport opens a new connection for every token request', async () => {
    const headers: http.IncomingHttpHeaders[] = [];
    const url = await listen(
      http.createServer((incoming, response) => {
        headers.push(incoming.headers);
        response.end('{}');
      }),
    );
    const tokenRequests = transport({}, 'token');
    for (let n = 0; n < 3; n += 1)
      expect(await tokenRequests.send(request(url))).toMatchObject({ status: 200 });
    expect(headers.map(({ connection }) => connection)).toEqual(['close', 'close', 'close']);
    expect(connections).toBe(3);
    await until(() => sockets.size === 0);
  });
});

it('HT-24 the transport reports that a request may have been sent, even if the socket of an agent reports no TLS handshake', async () => {
  // For example, a process on this machine adds TLS.
  const server = createServer((socket) => socket.once('data', () => socket.destroy()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const agent = new https.Agent();
  agent.createConnection = () => connect((server.address() as AddressInfo).port, '127.0.0.1');
  const calls = new Transport(resolveApiOptions({ agents: { https: agent } }), 'calls');
  const signal = new AbortController().signal;
  const url = 'https://service.example/';
  const request = { method: 'POST', url, headers: {}, signal, maxBytes: 1000 };
  expect(await calls.send(request)).toMatchObject({ errno: 'ECONNRESET', unsent: false });
  server.close();
});
