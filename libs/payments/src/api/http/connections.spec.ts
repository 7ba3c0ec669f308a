import { once } from 'node:events';
import http from 'node:http';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { resolveApiOptions, type PaymentsApiOptions } from '../api-options.js';
import type { ConnectionPurpose } from './connections.js';
import type { HttpRequest } from './exchange.js';
import { Transport } from './transport.js';

const immediate = promisify(setImmediate);

describe.each(['undici', 'http'] as const)('connections, adapter %s', (adapter) => {
  const cleanUp: (() => unknown)[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;

  beforeEach(() => {
    connections = 0;
  });

  afterEach(async () => {
    for (const one of cleanUp.splice(0).toReversed()) await one();
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

  /** A service that answers when the test says so, and the paths of its requests. */
  async function holding(): Promise<{ url: string; seen: string[]; answer: () => void }> {
    const seen: string[] = [];
    const held: http.ServerResponse[] = [];
    const server = http.createServer((request, response) => {
      seen.push(request.url!);
      held.push(response);
    });
    server.keepAliveTimeout = 0;
    return { url: await listen(server), seen, answer: () => held.shift()!.end('answer') };
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

  it('HT-28 are at most maxSockets to one host, and a waiting request is sent when one is free', async () => {
    const { url, seen, answer } = await holding();
    const purpose = transport({ maxSockets: 2 });
    const results = Promise.all(['1', '2', '3'].map((one) => purpose.send(request(url + one))));
    await until(() => seen.length === 2);
    answer();
    await until(() => seen.length === 3);
    answer();
    answer();
    expect(await results).toMatchObject([{ status: 200 }, { status: 200 }, { status: 200 }]);
    expect(connections).toBe(2);
  });

  it('HT-29 carry no request that was aborted while it waited for one, and stay in use', async () => {
    const { url, seen, answer } = await holding();
    const purpose = transport({ maxSockets: 1 });
    const end = new AbortController();
    const first = purpose.send(request(`${url}first`));
    await until(() => seen.length === 1);
    const ended = purpose.send(request(`${url}ended`, { signal: end.signal }));
    const last = purpose.send(request(`${url}last`));
    await immediate();
    end.abort();
    expect(await ended).toMatchObject({ kind: 'failure', unsent: true });
    answer();
    await until(() => seen.length === 2);
    answer();
    expect(await Promise.all([first, last])).toMatchObject([{ status: 200 }, { status: 200 }]);
    expect(seen).toEqual(['/first', '/last']);
    expect(connections).toBe(1);
  });

  it('are opened again after all were refused', async () => {
    const gone = createServer();
    const url = await listen(gone);
    await new Promise((resolve) => gone.close(resolve));
    const purpose = transport({ maxSockets: 4 });
    const refused = await Promise.all(Array.from({ length: 50 }, () => purpose.send(request(url))));
    for (const one of refused) expect(one).toMatchObject({ unsent: true, errno: 'ECONNREFUSED' });
    await listen(
      http.createServer((_, response) => response.end('here')),
      Number(new URL(url).port),
    );
    const answers = await Promise.all(Array.from({ length: 50 }, () => purpose.send(request(url))));
    for (const one of answers) expect(one).toMatchObject({ status: 200 });
    expect(connections).toBeLessThanOrEqual(4);
  });

  it('HT-24 a request is unsent if its TLS handshake did not end', async () => {
    const url = await listen(createServer((socket) => socket.resume()));
    const end = new AbortController();
    const secure = url.replace('http:', 'https:');
    const result = transport().send(request(secure, { signal: end.signal }));
    await until(() => connections === 1);
    end.abort();
    expect(await result).toMatchObject({ kind: 'failure', unsent: true });
  });

  it('TK-20 are closed with their transport: used, idle and opening ones', async () => {
    const { url, seen, answer } = await holding();
    const hanging = await listen(createServer((socket) => socket.resume()));
    // Longer than a test may take: nothing here times out.
    const purpose = transport({ attemptTimeoutMs: 300_000 });
    const idle = purpose.send(request(url));
    await until(() => seen.length === 1);
    const used = purpose.send(request(url));
    await until(() => seen.length === 2);
    answer();
    await idle;
    const opening = purpose.send(request(hanging.replace('http:', 'https:')));
    await until(() => connections === 3);
    await purpose.close();
    expect(await used).toMatchObject({ kind: 'failure', unsent: false });
    expect(await opening).toMatchObject({ kind: 'failure', unsent: true });
    await until(() => sockets.size === 0);
  });

  it('TK-14 every token request has a connection of its own', async () => {
    const headers: http.IncomingHttpHeaders[] = [];
    const url = await listen(
      http.createServer((incoming, response) => {
        headers.push(incoming.headers);
        response.end('{}');
      }),
    );
    const purpose = transport({}, 'token');
    for (let n = 0; n < 3; n += 1)
      expect(await purpose.send(request(url))).toMatchObject({ status: 200 });
    expect(headers.map(({ connection }) => connection)).toEqual(['close', 'close', 'close']);
    expect(connections).toBe(3);
    await until(() => sockets.size === 0);
  });
});
