import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { isPublicHost, PrivateHostError, publicFetch } from './public-fetch.js';
import type { LookupAll } from './public-fetch.js';

/** In this spec 127.0.0.1 counts as public, and every other address does not. */
const isPublic = (address: string): boolean => address === '127.0.0.1';

/** Creates a lookup that returns the next list of addresses at each call. */
function lookups(...addressLists: string[][]): LookupAll & { asked: string[] } {
  const asked: string[] = [];
  const lookup: LookupAll = (hostname, _options, callback) => {
    const addresses = addressLists[asked.length] ?? [];
    asked.push(hostname);
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  return Object.assign(lookup, { asked });
}

async function server(respond: RequestListener) {
  const seen: IncomingMessage[] = [];
  const listening = createServer((request, response) => {
    seen.push(request);
    respond(request, response);
  });
  await new Promise<void>((ready) => listening.listen(0, '127.0.0.1', ready));
  const { port } = listening.address() as AddressInfo;
  return {
    seen,
    port,
    async [Symbol.asyncDispose]() {
      listening.closeAllConnections();
      await new Promise((closed) => listening.close(closed));
    },
  };
}

const post = (body: string): RequestInit => ({ method: 'POST', body, redirect: 'manual' });

describe('publicFetch', () => {
  it('SE-14 publicFetch() connects to the checked address, even if the name later resolves to another address', async () => {
    await using receiver = await server((_, response) => response.end('ok'));
    const lookup = lookups(['127.0.0.1'], ['127.0.0.2']);
    const fetch = publicFetch({ lookup, isPublic });
    const response = await fetch(`http://shop.example:${receiver.port}/hook`, post('{}'));
    expect([response.status, await response.text()]).toEqual([200, 'ok']);
    expect(receiver.seen[0]!.headers.host).toBe(`shop.example:${receiver.port}`);
    expect(lookup.asked).toEqual(['shop.example']);
    await expect(fetch(`http://shop.example:${receiver.port}/hook`, post('{}'))).rejects.toThrow(
      PrivateHostError,
    );
    expect(receiver.seen).toHaveLength(1);
  });

  it.each([[['127.0.0.2']], [['127.0.0.1', '127.0.0.2']], [['127.0.0.1', '::1']], [[]]])(
    'SE-14 publicFetch() sends nothing to a name that resolves to %j',
    async (addresses) => {
      await using receiver = await server((_, response) => response.end());
      const fetch = publicFetch({ lookup: lookups(addresses), isPublic });
      await expect(fetch(`http://shop.example:${receiver.port}/`, post('{}'))).rejects.toThrow(
        PrivateHostError,
      );
      expect(receiver.seen).toEqual([]);
    },
  );

  it.each(['127.0.0.2', '[::1]', '10.0.0.1', '[::ffff:127.0.0.1]'])(
    'SE-14 publicFetch() sends nothing to %s',
    async (host) => {
      await expect(publicFetch({ isPublic })(`http://${host}:9/`, post('{}'))).rejects.toThrow(
        PrivateHostError,
      );
    },
  );

  it('SE-14 publicFetch() follows no redirect', async () => {
    await using receiver = await server((_, response) =>
      response.writeHead(307, { location: 'http://127.0.0.2/' }).end(),
    );
    const response = await publicFetch({ isPublic })(
      `http://127.0.0.1:${receiver.port}/`,
      post('{}'),
    );
    expect(response.status).toBe(307);
    expect([...response.headers]).toEqual([]);
  });

  it.each([204, 304, 400, 599])(
    'publicFetch() returns a response with status %i',
    async (status) => {
      await using receiver = await server((_, response) => response.writeHead(status).end());
      const response = await publicFetch({ isPublic })(
        `http://127.0.0.1:${receiver.port}/`,
        post('{}'),
      );
      expect(response.status).toBe(status);
    },
  );

  it('publicFetch() rejects if the status of the response is invalid', async () => {
    await using receiver = await server((request) => {
      request.socket.end('HTTP/1.1 999 What\r\ncontent-length: 0\r\n\r\n');
    });
    await expect(
      publicFetch({ isPublic })(`http://127.0.0.1:${receiver.port}/`, post('{}')),
    ).rejects.toThrow('200 to 599');
  });

  it('publicFetch() rejects when its signal aborts', async () => {
    const abort = new AbortController();
    await using receiver = await server(() => abort.abort());
    await expect(
      publicFetch({ isPublic })(`http://127.0.0.1:${receiver.port}/`, {
        ...post('{}'),
        signal: abort.signal,
      }),
    ).rejects.toThrow('aborted');
  });
});

describe('isPublicHost', () => {
  it.each([
    ['shop.example', [['127.0.0.1']], true],
    ['shop.example', [['127.0.0.1', '10.0.0.1']], false],
    ['127.0.0.1', [], true],
    ['[::1]', [], false],
  ])('isPublicHost() of %s, resolved to %j, returns %s', async (host, addressLists, expected) => {
    expect(await isPublicHost(host, { lookup: lookups(...addressLists), isPublic })).toBe(expected);
  });

  it('isPublicHost() returns true for a name that does not resolve yet', async () => {
    const lookup: LookupAll = (_, __, callback) => callback(new Error('ENOTFOUND'), []);
    expect(await isPublicHost('shop.example', { lookup })).toBe(true);
  });
});
