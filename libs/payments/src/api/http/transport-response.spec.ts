import { once } from 'node:events';
import { createServer, type OutgoingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { brotliCompressSync, createGzip, deflateSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from '@jest/globals';
import { resolveApiOptions } from '../api-options.js';
import type { HttpFailure, HttpRequest, HttpResponse } from './http-exchange.js';
import { Transport } from './transport.js';

describe.each(['undici', 'http', 'fetch'] as const)(
  'Transport.send() with the adapter %s',
  (adapter) => {
    const cleanUp: (() => unknown)[] = [];
    const sockets = new Set<Socket>();

    afterEach(async () => {
      for (const action of cleanUp.splice(0)) await action();
    });

    /** Sends a request to a server that responds with `respond`. */
    async function sendTo(
      respond: (response: ServerResponse) => void,
      more: Partial<HttpRequest> = {},
    ): Promise<HttpResponse | HttpFailure> {
      const server = createServer((_, response) => respond(response));
      server.on('connection', (socket: Socket) => {
        sockets.add(socket);
        socket.on('close', () => sockets.delete(socket));
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const transport = new Transport(resolveApiOptions({ adapter }), 'calls');
      cleanUp.push(
        () => transport.close(),
        () => server.close(),
      );
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
      const { signal } = new AbortController();
      const request = { method: 'POST', url, headers: {}, signal, maxBytes: 1_000_000 };
      return transport.send({ ...request, ...more });
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

    it('send() returns an empty body for HEAD, also with a content-encoding', async () => {
      const headers = { 'content-encoding': 'gzip' };
      const result = await sendTo((response) => response.writeHead(200, headers).end(), {
        method: 'HEAD',
      });
      expect(result).toMatchObject({ status: 200, body: Buffer.alloc(0) });
    });

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
      'send() returns the expected result for a %i whose body is interrupted, compressed or not',
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
