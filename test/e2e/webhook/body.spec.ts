import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { bytesOf, headOf } from '../../support/webhook/request-bytes.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import type { SignedWebhook } from '../../support/webhook/signed-webhook.js';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { until, timersAtRest } from '../../support/time/waiting.js';
import { RawConnection } from '../../support/http/http-exchange.js';
import {
  Orders,
  ADAPTERS,
  BODY_OPTIONS,
  SECRET,
  ADAPTER_OPTIONS,
  WebhookApplication,
} from '../../support/webhook/webhook-application.js';

const COMPANY = { webhookSecret: SECRET };
const MIB = 1024 ** 2;

/** A webhook request whose body has exactly this number of bytes. */
function ofSize(bytes: number): SignedWebhook {
  const id = randomUUID();
  const bare = signedWebhook(COMPANY, { id, metadata: { pad: '' } }).body.byteLength;
  return signedWebhook(COMPANY, { id, metadata: { pad: 'x'.repeat(bytes - bare) } });
}

/** Changes of the headers of a request with a chunked body. */
const CHUNKED = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' };
const chunk = (bytes: Uint8Array) =>
  Buffer.concat([Buffer.from(`${bytes.byteLength.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);

describe.each(ADAPTER_OPTIONS)('the body on $adapter with $option', ({ adapter, option }) => {
  const runtime = new FakeRuntime();
  let app: WebhookApplication;
  let orders: Orders;
  let idle: number;
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown) => void unhandled.push(reason);
  beforeAll(async () => {
    app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      nest: BODY_OPTIONS[option]!,
      payments: { runtime },
      providers: [Orders],
    });
    orders = app.app.get(Orders);
    process.on('unhandledRejection', onUnhandled);
  });
  beforeEach(async () => {
    app.log.lines.length = 0;
    idle = await timersAtRest(runtime);
  });
  afterAll(async () => {
    process.off('unhandledRejection', onUnhandled);
    await app.app.close();
    expect(unhandled).toEqual([]);
  });
  const connection = async () => RawConnection.open(app.url);

  it('WH-04 a body of exactly 1 MiB is accepted, and one byte more gets 413', async () => {
    expect(await app.send(ofSize(MIB))).toMatchObject({ status: 200 });
    expect(await app.send(ofSize(MIB + 1))).toMatchObject({
      status: 413,
      body: { statusCode: 413, code: 'payload_too_large' },
    });
  });

  it('WH-04 a chunked body over the limit gets 413', async () => {
    const fits = ofSize(MIB);
    const over = ofSize(MIB + 1);
    const halves = ({ body }: SignedWebhook) => [body.subarray(0, 1000), body.subarray(1000)];
    expect(await app.send(fits, { body: halves(fits) })).toMatchObject({ status: 200 });
    expect(await app.send(over, { body: halves(over) })).toMatchObject({ status: 413 });
  });

  it('WH-04 a sender that finishes its body after a 413 can use the connection for its next request', async () => {
    const sender = await connection();
    const size = 2 * MIB;
    await sender.write(headOf(signedWebhook(COMPANY), { 'Content-Length': `${size}` }));
    expect(await sender.status()).toBe(413);
    await sender.write(Buffer.alloc(size, 32));
    await sender.write(bytesOf(signedWebhook(COMPANY)));
    expect(await sender.status()).toBe(200);
    expect(runtime.pending).toBe(idle);
    sender.socket.destroy();
  });

  it('WH-04 an endless body gets 413, and its connection is closed 5 s later', async () => {
    const sender = await connection();
    await sender.write(headOf(signedWebhook(COMPANY), CHUNKED));
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

  it('WH-07 a chunked body that arrives one byte at a time is verified', async () => {
    const signed = signedWebhook(COMPANY);
    const body = [...signed.body].map((byte) => Uint8Array.of(byte));
    expect(await app.send(signed, { body })).toMatchObject({ status: 200 });
    expect(orders.seen.at(-1)!.context.raw.equals(signed.body)).toBe(true);
  });

  it('WH-07 a body in many small packets is verified, even if the packets split its characters', async () => {
    const signed = signedWebhook(COMPANY, { metadata: { note: '€uro → 😀'.repeat(9) } });
    const sender = await connection();
    sender.socket.setNoDelay(true);
    await sender.write(headOf(signed));
    for (let at = 0; at < signed.body.byteLength; at += 5) {
      await sender.write(signed.body.subarray(at, at + 5));
    }
    expect(await sender.status()).toBe(200);
    sender.socket.destroy();
  });

  it('WH-07 a sender that waits for "100 Continue" gets this response, and then 200', async () => {
    const signed = signedWebhook(COMPANY);
    const sender = await connection();
    await sender.write(headOf(signed, { Expect: '100-continue' }));
    expect(await sender.status()).toBe(100);
    await sender.write(signed.body);
    expect(await sender.status()).toBe(200);
    sender.socket.destroy();
  });

  it('an empty body gets 401 if it is unsigned, and 400 if it is signed', async () => {
    const { path, headers } = signedWebhook(COMPANY, '');
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
      const signed = signedWebhook(COMPANY);
      await sender.write(headOf(signed) + '{"id"');
      await until(() => runtime.pending > idle, 'the request');
      sender.socket[how]();
      await until(() => runtime.pending === idle, 'the end of the request');
    }
    while ((await open()) > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(app.log.lines).toEqual([]);
    expect(await app.send(signedWebhook(COMPANY))).toMatchObject({ status: 200 });
  });

  it('SE-04 a body that takes longer than 5 s gets 408, and then its connection is closed', async () => {
    const sender = await connection();
    await sender.write(headOf(signedWebhook(COMPANY)) + '{');
    await until(() => runtime.pending > idle, 'the request');
    runtime.advance(4999);
    await timersAtRest(runtime);
    expect(runtime.pending).toBeGreaterThan(idle);
    const responded = sender.status();
    runtime.advance(1);
    expect(await responded).toBe(408);
    runtime.advance(5000);
    expect(await sender.all()).toContain('"body_timeout"');
    expect(runtime.pending).toBe(idle);
  });

  it('a signature header of 10,000 bytes gets 401, and a signature header of 20,000 bytes gets 431 from Node.js', async () => {
    const signature = (length: number) => ({ 'X-Webhook-Signature': 'a'.repeat(length) });
    const response = await app.send(signedWebhook(COMPANY), { headers: signature(10_000) });
    expect(response).toMatchObject({ status: 401, body: { code: 'signature_malformed' } });
    const large = await app.send(signedWebhook(COMPANY), { headers: signature(20_000) });
    expect(large.status).toBe(431);
  });
});
