import { once } from 'node:events';
import http from 'node:http';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from '@jest/globals';
import { HttpService } from '@nestjs/axios';
import { AxiosError, create } from 'axios';
import { of, throwError } from 'rxjs';
import { resolveApiOptions } from './api.options.js';
import type { HttpRequest } from './http.answer.js';
import { HttpSender } from './http.sender.js';

const servers: Server[] = [];
const senders: HttpSender[] = [];

async function listen(server: Server): Promise<number> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function sender(service = new HttpService(create())): HttpSender {
  const made = new HttpSender(service, resolveApiOptions(), 'calls');
  senders.push(made);
  return made;
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
  await Promise.all(senders.splice(0).map((one) => one.close()));
  for (const one of servers.splice(0)) one.close();
});

describe('HttpSender', () => {
  it('knows that nothing was sent where the connection is refused', async () => {
    const port = await listen(createServer());
    await new Promise((resolve) => servers.pop()?.close(resolve));
    expect(await sender().send(request(`http://127.0.0.1:${port}/`))).toEqual({
      kind: 'failure',
      reason: 'connection_failed',
      unsent: true,
      errno: 'ECONNREFUSED',
      status: undefined,
    });
    // Happy eyeballs: two addresses refused, as one AggregateError.
    expect(await sender().send(request(`http://localhost:${port}/`))).toMatchObject({
      unsent: true,
      errno: 'ECONNREFUSED',
    });
  });

  it('knows that nothing was sent where the TLS handshake fails, though the connection stood', async () => {
    let connections = 0;
    const port = await listen(
      createServer((socket) => {
        connections += 1;
        socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
        socket.on('error', () => {});
      }),
    );
    const result = await sender().send(request(`https://127.0.0.1:${port}/`));
    expect(result).toMatchObject({ kind: 'failure', unsent: true });
    expect(connections).toBe(1);
  });

  it('does not know it where the connection stood', async () => {
    const port = await listen(createServer((socket) => socket.destroy()));
    expect(await sender().send(request(`http://127.0.0.1:${port}/`))).toMatchObject({
      kind: 'failure',
      unsent: false,
    });
  });

  it('does not know it of an HttpService that was replaced, but for errors of connecting', async () => {
    const fails = (error: unknown): HttpSender => {
      const service = new HttpService(create());
      service.request = () => throwError(() => error);
      return sender(service);
    };
    const url = 'http://127.0.0.1:9/';
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

  it('ends with its signal, even where the answer of a replaced HttpService would never end', async () => {
    const service = new HttpService(create());
    const data = new Readable({ read: () => {} });
    service.request = (() => of({ status: 200, headers: {}, data })) as never;
    const end = new AbortController();
    const result = sender(service).send(request('http://127.0.0.1:9/', { signal: end.signal }));
    setImmediate(() => end.abort());
    expect(await result).toMatchObject({ kind: 'failure', unsent: false, status: 200 });
    expect(data.destroyed).toBe(true);
  });

  it('lets no global default of axios add a header, a redirect or a proxy', async () => {
    const seen: http.IncomingMessage['headers'][] = [];
    const port = await listen(
      http.createServer((incoming, response) => {
        seen.push(incoming.headers);
        response.writeHead(302, { location: '/again' }).end();
      }),
    );
    const axios = create({
      headers: { common: { Authorization: 'Bearer stray', 'x-auth-token': 'Bearer stray' } },
      maxRedirects: 5,
      proxy: { host: '127.0.0.1', port: 9 },
    });
    const headers = { authorization: false as const, 'x-auth-token': 'Bearer mine' };
    const result = await sender(new HttpService(axios)).send(
      request(`http://127.0.0.1:${port}/`, { headers }),
    );
    expect(result).toMatchObject({ kind: 'answer', status: 302 });
    expect(seen).toHaveLength(1);
    expect(seen[0]).not.toHaveProperty('authorization');
    expect(seen[0]?.['x-auth-token']).toBe('Bearer mine');
  });

  it('reads no proxy from the environment', async () => {
    const port = await listen(http.createServer((_, response) => response.end('here')));
    const before = process.env['HTTP_PROXY'];
    process.env['HTTP_PROXY'] = 'http://127.0.0.1:9';
    try {
      expect(await sender().send(request(`http://127.0.0.1:${port}/`))).toMatchObject({
        status: 200,
      });
    } finally {
      if (before === undefined) delete process.env['HTTP_PROXY'];
      else process.env['HTTP_PROXY'] = before;
    }
  });
});
