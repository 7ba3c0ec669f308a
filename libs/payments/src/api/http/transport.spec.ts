import { once } from 'node:events';
import http from 'node:http';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from '@jest/globals';
import { HttpService } from '@nestjs/axios';
import axios, { AxiosError, create } from 'axios';
import { of, throwError } from 'rxjs';
import { resolveApiOptions, type PaymentsApiOptions } from '../api-options.js';
import type { HttpRequest } from './http-exchange.js';
import { Transport } from './transport.js';

const servers: Server[] = [];
const transports: Transport[] = [];

async function listen(server: Server): Promise<number> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function transport(options: PaymentsApiOptions): Transport {
  const created = new Transport(resolveApiOptions(options), 'calls');
  transports.push(created);
  return created;
}

const request = (url: string, more: Partial<HttpRequest> = {}): HttpRequest => ({
  method: 'POST',
  url,
  headers: {},
  signal: new AbortController().signal,
  maxBytes: 1_000,
  ...more,
});

afterEach(async () => {
  await Promise.all(transports.splice(0).map((transport) => transport.close()));
  for (const server of servers.splice(0)) server.close();
});

describe.each(['undici', 'http', 'fetch'] as const)('Transport with the adapter %s', (adapter) => {
  it('HT-24 Transport reports a request as unsent if the connection was refused', async () => {
    const port = await listen(createServer());
    await new Promise((resolve) => servers.pop()?.close(resolve));
    expect(await transport({ adapter }).send(request(`http://127.0.0.1:${port}/`))).toEqual({
      kind: 'failure',
      reason: 'connection_failed',
      unsent: true,
      errno: 'ECONNREFUSED',
      status: undefined,
    });
    // localhost has two addresses, so the error is an AggregateError.
    expect(await transport({ adapter }).send(request(`http://localhost:${port}/`))).toMatchObject({
      unsent: true,
      errno: 'ECONNREFUSED',
    });
  });

  it('HT-24 Transport reports a request as unsent if the TLS handshake failed, except with fetch', async () => {
    let connections = 0;
    const port = await listen(
      createServer((socket) => {
        connections += 1;
        socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
        socket.on('error', () => {});
      }),
    );
    const result = await transport({ adapter }).send(request(`https://127.0.0.1:${port}/`));
    expect(result).toMatchObject({ kind: 'failure', unsent: adapter !== 'fetch' });
    expect(connections).toBe(1);
  });

  it('HT-24 Transport reports that a request may have been sent if the connection was open', async () => {
    const port = await listen(createServer((socket) => socket.destroy()));
    const result = await transport({ adapter }).send(request(`http://127.0.0.1:${port}/`));
    expect(result).toMatchObject({ kind: 'failure', unsent: false });
  });

  it('Transport uses no header, redirect, proxy or interceptor of the global axios', async () => {
    const seen: http.IncomingHttpHeaders[] = [];
    const intercepted: unknown[] = [];
    const port = await listen(
      http.createServer((incoming, response) => {
        seen.push(incoming.headers);
        response.writeHead(302, { location: '/again' }).end();
      }),
    );
    const { defaults, interceptors } = axios;
    const before = { ...defaults };
    const interceptor = interceptors.request.use((config) => {
      intercepted.push(config);
      return config;
    });
    defaults.headers.common['x-stray'] = 'stray';
    Object.assign(defaults, {
      auth: { username: 'stray', password: 'stray' },
      baseURL: 'http://127.0.0.1:9',
      maxRedirects: 5,
      params: { stray: true },
      proxy: { host: '127.0.0.1', port: 9 },
    });
    try {
      const headers = { authorization: 'Bearer mine', 'x-auth-token': false as const };
      const result = await transport({ adapter }).send(
        request(`http://127.0.0.1:${port}/`, { headers }),
      );
      expect(result).toMatchObject({ kind: 'response', status: 302 });
    } finally {
      interceptors.request.eject(interceptor);
      delete defaults.headers.common['x-stray'];
      for (const name of ['auth', 'baseURL', 'maxRedirects', 'params', 'proxy'] as const) {
        if (name in before) Object.assign(defaults, { [name]: before[name] });
        else delete defaults[name];
      }
    }
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({ authorization: 'Bearer mine' });
    expect(seen[0]).not.toHaveProperty('x-stray');
    expect(seen[0]).not.toHaveProperty('x-auth-token');
    expect(intercepted).toEqual([]);
  });

  it('Transport uses no proxy from the environment', async () => {
    const port = await listen(http.createServer((_, response) => response.end('here')));
    const before = process.env['HTTP_PROXY'];
    process.env['HTTP_PROXY'] = 'http://127.0.0.1:9';
    try {
      expect(await transport({ adapter }).send(request(`http://127.0.0.1:${port}/`))).toMatchObject(
        { status: 200 },
      );
    } finally {
      if (before === undefined) delete process.env['HTTP_PROXY'];
      else process.env['HTTP_PROXY'] = before;
    }
  });
});

describe('Transport with the option api.http', () => {
  const url = 'http://127.0.0.1:9/';

  function mocked(mock: HttpService['request']): Transport {
    const service = new HttpService(create());
    service.request = mock;
    return transport({ http: service });
  }

  it('HT-24 Transport reports a request as unsent only if the HttpService fails with an error of DNS or connect', async () => {
    const fails = (error: unknown): Transport => mocked(() => throwError(() => error));
    const reset = Object.assign(new Error('secret'), { code: 'ECONNRESET', syscall: 'read' });
    const refused = Object.assign(new Error('secret'), {
      code: 'ECONNREFUSED',
      syscall: 'connect',
    });
    expect(await fails(reset).send(request(url))).toMatchObject({ unsent: false });
    expect(await fails(AxiosError.from(refused)).send(request(url))).toMatchObject({
      unsent: true,
    });
    expect(await fails(undefined).send(request(url))).toMatchObject({ unsent: false });
  });

  it.each([
    ['an object', { a: 1 }, '{"a":1}'],
    ['a text', 'text', 'text'],
    ['a buffer', Buffer.from('bytes'), 'bytes'],
    ['nothing', undefined, ''],
  ])('Transport reads the body of a mock that returns %s', async (_, data, text) => {
    const result = await mocked((() => of({ status: 200, data })) as never).send(request(url));
    expect(result).toMatchObject({ status: 200, body: Buffer.from(text) });
  });

  it('HT-29 Transport stops reading an endless stream of an HttpService when the signal is aborted', async () => {
    const data = new Readable({ read: () => {} });
    const abort = new AbortController();
    const result = mocked((() => of({ status: 200, headers: {}, data })) as never).send(
      request(url, { signal: abort.signal }),
    );
    setImmediate(() => abort.abort());
    expect(await result).toMatchObject({ kind: 'failure', unsent: false, status: 200 });
    expect(data.destroyed).toBe(true);
  });

  it.each([undefined, 'undici', 'http', 'fetch'] as const)(
    'Transport runs the interceptors of the HttpService with the adapter %p',
    async (adapter) => {
      let seen: http.IncomingHttpHeaders = {};
      const port = await listen(
        http.createServer((incoming, response) => {
          seen = incoming.headers;
          response.end('here');
        }),
      );
      const instance = create();
      instance.interceptors.request.use((config) => {
        config.headers.set('x-added', 'added');
        return config;
      });
      const given = transport({ http: new HttpService(instance), ...(adapter && { adapter }) });
      const result = await given.send(request(`http://127.0.0.1:${port}/`));
      expect(result).toMatchObject({ status: 200, body: Buffer.from('here') });
      expect(seen).toHaveProperty('x-added', 'added');
    },
  );
});
