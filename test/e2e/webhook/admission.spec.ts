import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import type { MiddlewareConsumer, NestMiddleware, NestModule } from '@nestjs/common';
import type { Company, PaymentsModuleOptions, WebhookOptions } from 'nestjs-payments';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { timersAtRest, until } from '../../support/time/waiting.js';
import { RawConnection } from '../../support/http/http-exchange.js';
import { FORGED, head } from '../../support/webhook/request-bytes.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { Hooks } from '../../support/webhook/webhook-controllers.js';
import {
  ADAPTERS,
  SECRET,
  WebhookApplication,
  company,
} from '../../support/webhook/webhook-application.js';

const COMPANY = { webhookSecret: SECRET };
describe.each(Object.keys(ADAPTERS))('admission on %s', (adapter) => {
  const runtime = new FakeRuntime();
  const open: RawConnection[] = [];
  let app: WebhookApplication;
  let idle: number;
  const start = async (
    webhook: WebhookOptions,
    payments: Partial<PaymentsModuleOptions> = {},
    more: Partial<Parameters<typeof WebhookApplication.start>[0]> = {},
  ): Promise<void> => {
    app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      payments: { runtime, webhook, ...payments },
      controllers: [Hooks],
      ...more,
    });
    app.log.lines.length = 0;
    idle = await timersAtRest(runtime);
  };
  const connection = async (): Promise<RawConnection> => {
    const opened = await RawConnection.open(app.url);
    open.push(opened);
    return opened;
  };
  /** Sends webhook requests that are admitted, but never sends their bodies. */
  const pending = async (count: number, path?: string): Promise<RawConnection[]> => {
    const senders: RawConnection[] = [];
    for (let n = 1; n <= count; n += 1) {
      const timers = runtime.pending;
      const sender = await connection();
      await sender.write(head(path));
      await until(() => runtime.pending > timers, 'the request');
      senders.push(sender);
    }
    return senders;
  };
  const valid = async (webhookSecret = SECRET) => app.send(signedWebhook({ webhookSecret }));
  beforeEach(() => void open.splice(0));
  afterEach(async () => {
    for (const { socket } of open) socket.destroy();
    await app.app.close();
  });

  describe.each(['/webhooks/payments', '/hooks'])('SE-02 at %s', (path) => {
    it.each([
      ['without a signature', '/default', { 'X-Webhook-Signature': undefined }, 401],
      ['with a malformed signature', '/default', { 'X-Webhook-Signature': 'sha512=abc' }, 401],
      ['with 11 signatures', '/default', { 'X-Webhook-Signature': `${FORGED},`.repeat(11) }, 401],
      ['of another content type', '/default', { 'Content-Type': 'text/plain' }, 415],
      ['with an encoded body', '/default', { 'Content-Encoding': 'gzip' }, 415],
      ['with a length over the limit', '/default', { 'Content-Length': '1048577' }, 413],
      ['for a company that cannot exist', '/a%20b', {}, 401],
      ['for a company with a wrong character', '/a:b', {}, 401],
      ['for a company that is two dots', '/%2e%2e', {}, 401],
    ])(
      'a webhook request %s is rejected before its body is read',
      async (_, company, headers, status) => {
        // If the request were admitted, it would get no response before its body has arrived.
        const { promise: admitted, resolve } = Promise.withResolvers<string>();
        await start({ before: () => resolve('admitted') });
        const sender = await connection();
        await sender.write(head(path + company, headers));
        expect(await Promise.race([admitted, sender.status()])).toBe(status);
        expect(app.log.lines).toHaveLength(1);
      },
    );
  });

  it('SE-02 a well-formed webhook request gets no response before its body has arrived', async () => {
    await start({});
    const [sender] = await pending(1);
    let responded = false;
    void sender!.status().then((status) => (responded = status !== undefined));
    await timersAtRest(runtime);
    expect(responded).toBe(false);
    await sender!.write('x'.repeat(1000));
    await until(() => responded, 'the response');
  });

  it('SE-03 a webhook request above "maxPending" gets 503 with Retry-After, and a later request gets 200 after a pending request has ended', async () => {
    await start({ maxPending: 3 });
    const senders = await pending(3);
    for (let n = 0; n < 5; n += 1) {
      expect(await valid()).toMatchObject({
        status: 503,
        headers: { 'retry-after': '1' },
        body: { statusCode: 503, code: 'webhook_busy' },
      });
    }
    expect(app.log.matching(/webhook_busy/)).toHaveLength(1);
    expect(app.log.lines[0]).toMatch(/^warn .*"webhook\.maxPending"/);
    senders[1]!.socket.destroy();
    await until(() => runtime.pending < idle + 3 + 5, 'the end of the slow request');
    await timersAtRest(runtime);
    expect(await valid()).toMatchObject({ status: 200 });
    expect(await valid()).toMatchObject({ status: 200 });
  });

  it('SE-03 slow senders do not block a valid webhook request, because the oldest slow request gets 503 instead', async () => {
    await start({ maxPending: 2 });
    const senders = await pending(2);
    runtime.advance(25);
    expect(await valid()).toMatchObject({ status: 200 });
    expect(await senders[0]!.status()).toBe(503);
    // The rejected request does not count as pending any more.
    expect(await valid()).toMatchObject({ status: 200 });
    runtime.advance(5000);
    expect(await senders[0]!.all()).toMatch(/retry-after: 1\r\n[^]*"webhook_busy"/i);
  });

  it('SE-03 a webhook request stops counting as pending after each kind of rejection', async () => {
    await start({ maxPending: 1 });
    const signed = signedWebhook(COMPANY);
    for (const [changes, status] of [
      [{ headers: { 'X-Webhook-Signature': FORGED } }, 401],
      [{ path: '/webhooks/payments/nobody' }, 401],
      [{ body: [Buffer.alloc(1024 ** 2), Buffer.alloc(10)] }, 413],
      [{}, 200],
      [{}, 200],
    ] as const) {
      expect(await app.send(signed, changes)).toMatchObject({ status });
    }
    const invalid = signedWebhook(COMPANY, '{}');
    expect(await app.send(invalid)).toMatchObject({ status: 400 });
    for (const how of ['end', 'destroy', 'resetAndDestroy'] as const) {
      const [sender] = await pending(1);
      sender!.socket[how]();
      await until(() => runtime.pending === idle, 'the end of the request');
    }
    const [late] = await pending(1);
    runtime.advance(5000);
    expect(await late!.status()).toBe(408);
    expect(await valid()).toMatchObject({ status: 200 });
  });

  it('SE-03 a webhook request stops counting as pending if other code responds before the guard', async () => {
    @Injectable()
    class Maintenance implements NestMiddleware {
      use(_: unknown, response: { statusCode: number; end(text: string): void }): void {
        response.statusCode = 418;
        response.end('{}');
      }
    }
    @Module({})
    class Middlewares implements NestModule {
      configure(consumer: MiddlewareConsumer): void {
        consumer.apply(Maintenance).forRoutes('hooks/*path');
      }
    }
    await start({ maxPending: 1 }, {}, { imports: [Middlewares] });
    for (let n = 0; n < 3; n += 1) {
      const result = await app.send(signedWebhook(COMPANY), { path: '/hooks/default' });
      expect(result.status).toBe(418);
    }
    expect(await valid()).toMatchObject({ status: 200 });
  });

  it('SE-03 if the company directory does not respond, the webhook request that waits for it is rejected in favour of a newer request', async () => {
    const acme = company('acme', SECRET);
    const find = async (id: string): Promise<Company | undefined> =>
      id === 'acme' ? acme : new Promise<undefined>(() => {});
    await start(
      { maxPending: 1 },
      { ...WITHOUT_COMPANY, baseUrl: 'http://127.0.0.1:9', companies: { find } },
    );
    const forAcme = async () => app.send(signedWebhook(acme));
    expect(await forAcme()).toMatchObject({ status: 200 });
    const timers = await timersAtRest(runtime);
    const hanging = app.send(signedWebhook({ ...acme, id: 'hanging' }));
    await until(() => runtime.pending > timers, 'the lookup');
    await timersAtRest(runtime);
    expect(await forAcme()).toMatchObject({ status: 503 });
    runtime.advance(25);
    expect(await forAcme()).toMatchObject({ status: 200 });
    expect(await hanging).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
      body: { code: 'webhook_busy' },
    });
  });

  it('SE-03 400 simultaneous valid webhook requests are all accepted', async () => {
    await start({});
    const responses = await Promise.all(Array.from({ length: 400 }, async () => valid()));
    expect(responses.filter(({ status }) => status !== 200)).toEqual([]);
  });

  it('SE-04 webhook requests whose body takes longer than "bodyTimeoutMs" get 408, with one log line', async () => {
    await start({ bodyTimeoutMs: 700 });
    const senders = await pending(10);
    runtime.advance(699);
    await timersAtRest(runtime);
    expect(runtime.pending).toBe(idle + 10);
    runtime.advance(1);
    for (const sender of senders) expect(await sender.status()).toBe(408);
    expect(app.log.lines).toEqual([
      'warn A webhook request was rejected (body_timeout). The body did not arrive within 700 ms. PaymentWebhook',
    ]);
    expect(await valid()).toMatchObject({ status: 200 });
  });
});

/** Removes the options of one company that {@link start} sets, because a directory replaces them. */
const WITHOUT_COMPANY = {
  clientId: undefined,
  clientSecret: undefined,
  webhookSecret: undefined,
} as unknown as Partial<PaymentsModuleOptions>;
