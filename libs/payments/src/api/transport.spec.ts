import { once } from 'node:events';
import http from 'node:http';
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { brotliCompressSync, createGzip, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from '@jest/globals';
import { resolveApiOptions, type PaymentsApiOptions } from './api-options.js';
import type { HttpFailure, HttpRequest, HttpResponse } from './http-exchange.js';
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

  it('HT-24 Transport reports a request as unsent if the TLS handshake failed, except with the adapter "fetch"', async () => {
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

describe.each(['undici', 'http', 'fetch'] as const)(
  'Transport.send() with the adapter %s',
  (adapter) => {
    const sockets = new Set<Socket>();

    /** Sends a request to a server that responds with `respond`. */
    async function sendTo(
      respond: (response: ServerResponse) => void,
      more: Partial<HttpRequest> = {},
    ): Promise<HttpResponse | HttpFailure> {
      const server = http.createServer((_, response) => respond(response));
      server.on('connection', (socket: Socket) => {
        sockets.add(socket);
        socket.on('close', () => sockets.delete(socket));
      });
      const url = `http://127.0.0.1:${await listen(server)}/`;
      return transport({ adapter }).send(request(url, { maxBytes: 1_000_000, ...more }));
    }

    it.each([
      ['gzip', gzipSync],
      ['x-gzip', gzipSync],
      ['deflate', deflateSync],
      ['br', brotliCompressSync],
    ])(
      'send() decompresses a %s body and removes the content-encoding header',
      async (coding, compress) => {
        const result = await sendTo((response) => {
          response.writeHead(200, { 'content-encoding': coding, 'x-other': '1' });
          response.end(compress('{"a":"ü"}'));
        });
        const { body, headers } = result as HttpResponse;
        expect(body.toString()).toBe('{"a":"ü"}');
        expect(headers).not.toHaveProperty('content-encoding');
        expect(headers).toHaveProperty('x-other', '1');
      },
    );

    it('HT-26 send() returns response_invalid if the body cannot be decompressed', async () => {
      const result = await sendTo((response) =>
        response.writeHead(200, { 'content-encoding': 'br' }).end(Buffer.alloc(40, 0xff)),
      );
      expect(result).toMatchObject({ kind: 'failure', reason: 'response_invalid', status: 200 });
    });

    it('send() does not change a body with an unknown content-encoding', async () => {
      const headers = { 'content-encoding': 'aes128gcm' };
      const result = await sendTo((response) => response.writeHead(200, headers).end('bytes'));
      expect((result as HttpResponse).body.toString()).toBe('bytes');
    });

    it.each(['HEAD', 'POST'])(
      'HT-26 send() returns an empty body of a %s, also with a content-encoding',
      async (method) => {
        const headers = { 'content-encoding': 'gzip', 'content-length': '0' };
        const result = await sendTo((response) => response.writeHead(200, headers).end(), {
          method,
        });
        expect(result).toMatchObject({ status: 200, body: Buffer.alloc(0) });
      },
    );

    it('send() returns the response that follows early hints', async () => {
      const result = await sendTo((response) => {
        response.writeEarlyHints({ link: '</x>; rel=preload' }, () => {
          response.writeHead(200, { 'x-final': '1' }).end('response');
        });
      });
      expect(result).toMatchObject({ status: 200, headers: { 'x-final': '1' } });
      expect((result as HttpResponse).headers).not.toHaveProperty('link');
    });

    it('send() fails if the connection closes after early hints', async () => {
      const result = await sendTo((response) => {
        response.writeEarlyHints({ link: '</x>; rel=preload' }, () => response.socket!.destroy());
      });
      expect(result).toMatchObject({ kind: 'failure', unsent: false, status: undefined });
    });

    const interrupted = { kind: 'failure', reason: 'connection_failed', unsent: false };
    it.each([
      [200, { ...interrupted, errno: expect.any(String), status: 200 }],
      [500, { kind: 'response', status: 500, headers: expect.anything(), body: Buffer.alloc(0) }],
    ])(
      'send() returns the expected result if the connection closes during the body (status %i, compressed and uncompressed)',
      async (status, expected) => {
        const halves: [OutgoingHttpHeaders, Buffer][] = [
          [{ 'content-length': '999' }, Buffer.from('{')],
          [{ 'content-encoding': 'gzip' }, gzipSync('x'.repeat(100)).subarray(0, 20)],
        ];
        for (const [headers, half] of halves) {
          const result = await sendTo((response) => {
            response.writeHead(status, headers);
            response.write(half, () => response.socket!.destroy());
          });
          expect(result).toEqual(expected);
        }
      },
    );

    it('HT-27 send() stops reading an endless compressed body at maxBytes', async () => {
      let written = 0;
      const result = await sendTo(
        (response) => {
          response.writeHead(200, { 'content-encoding': 'gzip' });
          const gzip = createGzip({ level: 0 });
          gzip.pipe(response);
          const more = (): void => {
            if (response.destroyed) return;
            written += 65_536;
            if (gzip.write(Buffer.alloc(65_536))) setImmediate(more);
            else gzip.once('drain', more);
          };
          more();
        },
        { maxBytes: 200_000 },
      );
      expect(result).toMatchObject({ kind: 'failure', reason: 'response_too_large', status: 200 });
      while (sockets.size > 0) await new Promise((resolve) => setImmediate(resolve));
      expect(written).toBeLessThan(64 * 1024 ** 2);
    });

    it('HT-29 send() stops decompressing a body when the signal is aborted', async () => {
      const abort = new AbortController();
      const result = await sendTo(
        (response) => {
          response.writeHead(200, { 'content-encoding': 'gzip' });
          response.write(gzipSync('x'.repeat(1000)).subarray(0, 15), () => abort.abort());
        },
        { signal: abort.signal },
      );
      expect(result).toMatchObject({ kind: 'failure', reason: 'connection_failed', unsent: false });
      while (sockets.size > 0) await new Promise((resolve) => setImmediate(resolve));
    });
  },
);
