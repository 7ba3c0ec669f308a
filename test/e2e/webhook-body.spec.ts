import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { signedDelivery } from '../support/webhook/signed-delivery.js';
import type { SignedDelivery } from '../support/webhook/signed-delivery.js';
import { FakeRuntime } from '../support/time/fake-runtime.js';
import { until, timersAtRest } from '../support/time/waiting.js';
import { RawConnection } from '../support/http/http-exchange.js';
import {
  Orders,
  ADAPTERS,
  BODY_OPTIONS,
  SECRET,
  STAGES,
  WebhookApplication,
} from '../support/webhook/webhook-application.js';

const COMPANY = { webhookSecret: SECRET };
const MIB = 1024 ** 2;

/** A delivery of exactly so many bytes. */
function ofSize(bytes: number): SignedDelivery {
  const id = randomUUID();
  const bare = signedDelivery(COMPANY, { id, metadata: { pad: '' } }).body.byteLength;
  return signedDelivery(COMPANY, { id, metadata: { pad: 'x'.repeat(bytes - bare) } });
}

/** A request's head, as it goes over the wire. */
function head({ path, headers }: SignedDelivery, ...more: string[]): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`POST ${path} HTTP/1.1`, 'Host: shop', ...lines, ...more, '', ''].join('\r\n');
}

const chunk = (bytes: Uint8Array) =>
  Buffer.concat([Buffer.from(`${bytes.byteLength.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);

describe.each(STAGES)('the body on $adapter with $option', ({ adapter, option }) => {
  const runtime = new FakeRuntime();
  let app: WebhookApplication;
  let orders: Orders;
  let idle: number;
  const strays: unknown[] = [];
  const onStray = (reason: unknown) => void strays.push(reason);
  beforeAll(async () => {
    app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      nest: BODY_OPTIONS[option]!,
      payments: { runtime },
      providers: [Orders],
    });
    orders = app.app.get(Orders);
    process.on('unhandledRejection', onStray);
  });
  beforeEach(async () => {
    app.log.lines.length = 0;
    idle = await timersAtRest(runtime);
  });
  afterAll(async () => {
    process.off('unhandledRejection', onStray);
    await app.app.close();
    expect(strays).toEqual([]);
  });
  const connection = async () => RawConnection.open(app.url);

  it('WH-04 accepts exactly 1 MiB, and answers one byte more 413', async () => {
    expect(await app.send(ofSize(MIB))).toMatchObject({ status: 200 });
    expect(await app.send(ofSize(MIB + 1))).toMatchObject({
      status: 413,
      body: { statusCode: 413, code: 'payload_too_large' },
    });
  });

  it('WH-04 applies the limit to a chunked body too', async () => {
    const fits = ofSize(MIB);
    const over = ofSize(MIB + 1);
    const halves = ({ body }: SignedDelivery) => [body.subarray(0, 1000), body.subarray(1000)];
    expect(await app.send(fits, { body: halves(fits) })).toMatchObject({ status: 200 });
    expect(await app.send(over, { body: halves(over) })).toMatchObject({ status: 413 });
  });

  it('WH-04 answers 413 over the limit before the whole body is read', async () => {
    const sender = await connection();
    await sender.write(head(signedDelivery(COMPANY), `Content-Length: ${50 * MIB}`) + '{');
    expect(await sender.status()).toBe(413);
    sender.socket.destroy();
  });

  it('WH-04 keeps the connection of a sender that finishes after its 413, and serves its next request', async () => {
    const sender = await connection();
    const size = 2 * MIB;
    await sender.write(head(signedDelivery(COMPANY), `Content-Length: ${size}`));
    expect(await sender.status()).toBe(413);
    await sender.write(Buffer.alloc(size, 32));
    const next = signedDelivery(COMPANY);
    await sender.write(head(next, `Content-Length: ${next.body.byteLength}`));
    await sender.write(next.body);
    expect(await sender.status()).toBe(200);
    expect(runtime.pending).toBe(idle);
    sender.socket.destroy();
  });

  it('WH-04 answers an endless body 413, discards the rest and then closes the connection', async () => {
    const sender = await connection();
    await sender.write(head(signedDelivery(COMPANY), 'Transfer-Encoding: chunked'));
    await sender.write(chunk(Buffer.alloc(MIB, 32)));
    await sender.write(chunk(Buffer.alloc(1, 32)));
    expect(await sender.status()).toBe(413);
    for (let sent = 0; sent < 20; sent += 1) {
      expect(await sender.write(chunk(Buffer.alloc(MIB, 32)))).toBe(true);
    }
    runtime.advance(4999);
    expect(sender.socket.destroyed).toBe(false);
    runtime.advance(1);
    await until(() => sender.socket.destroyed, 'the end of the connection');
    expect(app.log.lines).toEqual([]);
  });

  it('WH-04 reads the body of another content type no longer than that of a delivery', async () => {
    const sender = await connection();
    const text = signedDelivery(COMPANY);
    const other = { ...text, headers: { ...text.headers, 'Content-Type': 'text/plain' } };
    await sender.write(head(other, 'Transfer-Encoding: chunked'));
    expect(await sender.status()).toBe(415);
    runtime.advance(5000);
    await until(() => sender.socket.destroyed, 'the end of the connection');
  });

  it('WH-07 verifies a chunked body that arrives one byte at a time', async () => {
    const delivery = signedDelivery(COMPANY);
    const body = [...delivery.body].map((byte) => Uint8Array.of(byte));
    expect(await app.send(delivery, { body })).toMatchObject({ status: 200 });
    expect(orders.seen.at(-1)!.context.raw.equals(delivery.body)).toBe(true);
  });

  it('WH-07 verifies a body in many small packets that split its characters', async () => {
    const delivery = signedDelivery(COMPANY, { metadata: { note: '€uro → 😀'.repeat(9) } });
    const sender = await connection();
    sender.socket.setNoDelay(true);
    await sender.write(head(delivery, `Content-Length: ${delivery.body.byteLength}`));
    for (let at = 0; at < delivery.body.byteLength; at += 5) {
      await sender.write(delivery.body.subarray(at, at + 5));
    }
    expect(await sender.status()).toBe(200);
    sender.socket.destroy();
  });

  it('WH-07 answers a sender that waits for "100 Continue"', async () => {
    const delivery = signedDelivery(COMPANY);
    const sender = await connection();
    const length = `Content-Length: ${delivery.body.byteLength}`;
    await sender.write(head(delivery, length, 'Expect: 100-continue'));
    expect(await sender.status()).toBe(100);
    await sender.write(delivery.body);
    expect(await sender.status()).toBe(200);
    sender.socket.destroy();
  });

  it('rejects an empty body as unsigned, or as no envelope if it is signed', async () => {
    const { path, headers } = signedDelivery(COMPANY, '');
    expect(await app.exchange(path, { headers })).toMatchObject({
      status: 400,
      body: { code: 'payload_invalid' },
    });
    const unsigned = { 'Content-Type': 'application/json' };
    expect(await app.exchange(path, { headers: unsigned })).toMatchObject({
      status: 401,
      body: { code: 'signature_missing' },
    });
  });

  it('a client that disconnects in the middle of a body leaves no log line, timer or open connection', async () => {
    const server = app.app.getHttpServer() as Server;
    const open = () =>
      new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
    for (const how of ['end', 'destroy', 'resetAndDestroy'] as const) {
      const sender = await connection();
      const delivery = signedDelivery(COMPANY);
      await sender.write(head(delivery, `Content-Length: ${delivery.body.byteLength}`) + '{"id"');
      await until(() => runtime.pending > idle, 'the request');
      sender.socket[how]();
      await until(() => runtime.pending === idle, 'the end of the request');
    }
    while ((await open()) > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(app.log.lines).toEqual([]);
    expect(await app.send(signedDelivery(COMPANY))).toMatchObject({ status: 200 });
  });

  it('SE-04 answers a body that takes longer than 5 s 408, then closes the connection', async () => {
    const sender = await connection();
    const delivery = signedDelivery(COMPANY);
    await sender.write(head(delivery, `Content-Length: ${delivery.body.byteLength}`) + '{');
    await until(() => runtime.pending > idle, 'the request');
    const answered = sender.status();
    runtime.advance(4999);
    runtime.advance(1);
    expect(await answered).toBe(408);
    runtime.advance(5000);
    expect(await sender.all()).toContain('"body_timeout"');
    expect(runtime.pending).toBe(idle);
  });

  it('a signature header of 10,000 bytes is rejected, and Node answers one of 20,000 bytes 431', async () => {
    const signature = (length: number) => ({ 'X-Webhook-Signature': 'a'.repeat(length) });
    const answer = await app.send(signedDelivery(COMPANY), { headers: signature(10_000) });
    expect(answer).toMatchObject({ status: 401, body: { code: 'signature_malformed' } });
    const large = await app.send(signedDelivery(COMPANY), { headers: signature(20_000) });
    expect(large.status).toBe(431);
  });
});
