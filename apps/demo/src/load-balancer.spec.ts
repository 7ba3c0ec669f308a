import { once } from 'node:events';
import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { LoadBalancer } from './load-balancer.js';

describe('LoadBalancer', () => {
  const closing: (() => void)[] = [];
  afterEach(() => closing.splice(0).forEach((close) => close()));

  async function shop(respond: RequestListener): Promise<string> {
    const server = createServer(respond).listen(0, '127.0.0.1');
    await once(server, 'listening');
    closing.push(() => (server.close(), server.closeAllConnections()));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it('LoadBalancer forwards headers in both directions, keeps the original host header, and forwards redirects', async () => {
    await using balancer = await LoadBalancer.start();
    balancer.targets = [
      await shop(({ headers }, response) => {
        response.writeHead(303, { location: '/o/1', 'x-host': headers.host, 'x-own': '1' });
        response.end();
      }),
    ];
    const response = await fetch(balancer.url, { redirect: 'manual' });
    expect([response.status, Object.fromEntries(response.headers)]).toEqual([
      303,
      expect.objectContaining({ location: '/o/1', 'x-own': '1', 'x-host': balancer.url.slice(7) }),
    ]);
  });

  it('LoadBalancer tries the next shop after a refused connection; it responds with 502 if the shop crashes, and with 503 if no shop is reachable', async () => {
    const seen: string[] = [];
    const crashing = await shop((request) => void request.socket.destroy());
    const healthy = await shop((request, response) => {
      request.setEncoding('utf8').on('data', (text: string) => seen.push(text));
      request.on('end', () => response.end());
    });
    await using balancer = await LoadBalancer.start();
    const post = (body: string) => fetch(balancer.url, { method: 'POST', body });
    expect((await post('no shop')).status).toBe(503);
    balancer.targets = ['http://127.0.0.1:1', healthy];
    expect([(await post('a')).status, (await post('b')).status]).toEqual([200, 200]);
    balancer.targets = [crashing, healthy];
    const responses = [(await post('c')).status, (await post('d')).status];
    expect(new Set(responses)).toEqual(new Set([200, 502]));
    expect(seen).toHaveLength(3);
    expect((await fetch(balancer.url)).status).toBe(200);
    expect((await fetch(balancer.url)).status).toBe(200);
  });
});
