import { once } from 'node:events';
import http from 'node:http';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { HttpService } from '@nestjs/axios';
import { resolveApiOptions, type PaymentsApiOptions } from './api.options.js';
import type { Lane } from './connection.pools.js';
import type { HttpRequest } from './http.answer.js';
import { HttpSender } from './http.sender.js';

const immediate = promisify(setImmediate);

describe('the connections of a sender', () => {
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

  /** A service that answers when it is told to, and the paths it was asked for. */
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

  function sender(options: PaymentsApiOptions = {}, lane: Lane = 'calls'): HttpSender {
    const made = new HttpSender(new HttpService(), resolveApiOptions(options), lane);
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

  it('are no more to one host than maxSockets, and a request that waits for one is sent when one is free', async () => {
    const { url, seen, answer } = await holding();
    const it = sender({ maxSockets: 2 });
    const results = Promise.all(['1', '2', '3'].map((one) => it.send(request(url + one))));
    await until(() => seen.length === 2);
    answer();
    await until(() => seen.length === 3);
    answer();
    answer();
    expect(await results).toMatchObject([{ status: 200 }, { status: 200 }, { status: 200 }]);
    expect(connections).toBe(2);
  });

  it('never carry a request that ended while it waited for one, nor are lost to it', async () => {
    const { url, seen, answer } = await holding();
    const it = sender({ maxSockets: 1 });
    const end = new AbortController();
    const first = it.send(request(`${url}first`));
    await until(() => seen.length === 1);
    const ended = it.send(request(`${url}ended`, { signal: end.signal }));
    const last = it.send(request(`${url}last`));
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

  it('are opened anew after all were refused, whoever waited for one', async () => {
    const gone = createServer();
    const url = await listen(gone);
    await new Promise((resolve) => gone.close(resolve));
    const it = sender({ maxSockets: 4 });
    const refused = await Promise.all(Array.from({ length: 50 }, () => it.send(request(url))));
    for (const one of refused) expect(one).toMatchObject({ unsent: true, errno: 'ECONNREFUSED' });
    await listen(
      http.createServer((_, response) => response.end('here')),
      Number(new URL(url).port),
    );
    const answers = await Promise.all(Array.from({ length: 50 }, () => it.send(request(url))));
    for (const one of answers) expect(one).toMatchObject({ status: 200 });
    expect(connections).toBeLessThanOrEqual(4);
  });

  it('are told apart from a handshake that never ends: nothing was sent', async () => {
    const url = await listen(createServer((socket) => socket.resume()));
    const end = new AbortController();
    const secure = url.replace('http:', 'https:');
    const result = sender().send(request(secure, { signal: end.signal }));
    await until(() => connections === 1);
    end.abort();
    expect(await result).toMatchObject({ kind: 'failure', unsent: true });
  });

  it('are closed with their sender: those in use, those that are idle, and those that never opened', async () => {
    const { url, seen, answer } = await holding();
    const hanging = await listen(createServer((socket) => socket.resume()));
    // Longer than a test may take: nothing here ends by itself.
    const it = sender({ attemptTimeoutMs: 300_000 });
    const idle = it.send(request(url));
    await until(() => seen.length === 1);
    const used = it.send(request(url));
    await until(() => seen.length === 2);
    answer();
    await idle;
    const opening = it.send(request(hanging.replace('http:', 'https:')));
    await until(() => connections === 3);
    await it.close();
    expect(await used).toMatchObject({ kind: 'failure', unsent: false });
    expect(await opening).toMatchObject({ kind: 'failure', unsent: true });
    await until(() => sockets.size === 0);
  });

  it('of token requests are their own, one for each', async () => {
    const headers: http.IncomingHttpHeaders[] = [];
    const url = await listen(
      http.createServer((incoming, response) => {
        headers.push(incoming.headers);
        response.end('{}');
      }),
    );
    const it = sender({}, 'token');
    for (let n = 0; n < 3; n += 1)
      expect(await it.send(request(url))).toMatchObject({ status: 200 });
    expect(headers.map(({ connection }) => connection)).toEqual(['close', 'close', 'close']);
    expect(connections).toBe(3);
    await until(() => sockets.size === 0);
  });

  it("leave the application's own fetch alone", async () => {
    const url = await listen(http.createServer((_, response) => response.end('here')));
    await sender().send(request(url));
    for (const version of [1, 2]) {
      expect(Reflect.get(globalThis, Symbol.for(`undici.globalDispatcher.${version}`))).toBe(
        undefined,
      );
    }
  });
});
