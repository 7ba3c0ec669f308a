import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Catch, Injectable } from '@nestjs/common';
import type { ArgumentsHost, ExceptionFilter } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { OnPaymentEvent, PaymentInboxError, memoryInbox } from 'nestjs-payments';
import type { InboxDefinition } from 'nestjs-payments';
import type { InboxStore } from '../../../libs/payments/dist/inbox/store/inbox-store.js';
import { headOf } from '../../support/webhook/request-bytes.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { express } from '../../support/http/express.js';
import { Gate } from '../../support/time/gate.js';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { timersAtRest, turns, until } from '../../support/time/waiting.js';
import { RawConnection } from '../../support/http/http-exchange.js';
import { OnMethods } from '../../support/webhook/webhook-controllers.js';
import {
  Orders,
  ADAPTERS,
  SECRET,
  WebhookApplication,
} from '../../support/webhook/webhook-application.js';

const COMPANY = { webhookSecret: SECRET };

/** A memory inbox. `broken` replaces some methods of its store. */
function inboxWith(broken: Partial<InboxStore>): InboxDefinition {
  const memory = memoryInbox();
  return { ...memory, create: (runtime) => Object.assign(memory.create(runtime), broken) };
}

@Injectable()
class Slow {
  started = 0;
  finish = (): void => {};

  @OnPaymentEvent('*')
  async wait(): Promise<void> {
    this.started += 1;
    await new Promise<void>((resolve) => (this.finish = resolve));
  }
}

@Catch(PaymentInboxError)
class WithCode extends BaseExceptionFilter implements ExceptionFilter {
  override catch(error: PaymentInboxError, host: ArgumentsHost): void {
    const { code, statusCode } = error;
    this.applicationRef?.reply(host.switchToHttp().getResponse(), { mine: code }, statusCode);
  }
}

describe.each(Object.keys(ADAPTERS))('faults on %s', (adapter) => {
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown) => void unhandled.push(reason);
  beforeEach(() => void process.on('unhandledRejection', onUnhandled));
  afterEach(() => {
    process.off('unhandledRejection', onUnhandled);
    expect(unhandled.splice(0)).toEqual([]);
  });

  it.each([
    ['cannot receive the event', 'receive', 0],
    ['cannot find the original of a copy', 'find', 1],
  ] as const)(
    'WH-03 WH-17 the response is 503 if the store %s, and one log line has the cause',
    async (_, method, before) => {
      await using app = await WebhookApplication.start({
        adapter: ADAPTERS[adapter]!(),
        payments: {
          inbox: inboxWith({ [method]: async () => Promise.reject(new Error('disk full')) }),
        },
        controllers: [OnMethods],
        providers: [Orders],
      });
      const signed = signedWebhook(COMPANY);
      for (let sent = 0; sent < before; sent += 1) {
        expect(await app.send(signed)).toMatchObject({ status: 200 });
      }
      app.log.lines.length = 0;
      expect(await app.send(signed)).toMatchObject({
        status: 503,
        body: { code: 'inbox_unavailable' },
      });
      expect(app.log.matching(/disk full/)).toHaveLength(1);
      const own = await app.send(signed, { path: '/method' });
      expect(own).toMatchObject({ status: 503, body: { statusCode: 503 } });
      expect(own.text).not.toContain('disk full');
    },
  );

  it('SE-03 an asynchronous webhook.before that rejects a webhook request causes no unhandled rejection if "maxPending" requests are pending', async () => {
    const gate = new Gate();
    await using app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      payments: {
        runtime: new FakeRuntime(),
        webhook: { maxPending: 1, before: () => gate.pass().then(() => ({ status: 403 })) },
      },
    });
    const first = app.send(signedWebhook(COMPANY));
    await gate.arrival;
    expect(await app.send(signedWebhook(COMPANY))).toMatchObject({ status: 503 });
    expect(gate.entered).toBe(2);
    gate.open();
    expect(await first).toMatchObject({ status: 403, body: { code: 'request_rejected' } });
  });

  it('WH-17 an exception filter of the application can replace the response 503', async () => {
    await using app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      payments: { inbox: inboxWith({ receive: async () => Promise.reject(new Error('down')) }) },
      controllers: [OnMethods],
      main: (app) => void app.useGlobalFilters(new WithCode(app.getHttpAdapter())),
    });
    const result = await app.send(signedWebhook(COMPANY), { path: '/method' });
    expect(result).toMatchObject({ status: 503, body: { mine: 'inbox_unavailable' } });
  });

  it('the deadline starts when the webhook request arrives, and therefore includes the time for a slow body', async () => {
    const runtime = new FakeRuntime();
    await using app = await WebhookApplication.start({
      adapter: ADAPTERS[adapter]!(),
      payments: { runtime, deadlineMs: 10_000, webhook: { bodyTimeoutMs: 10_000 } },
      providers: [Slow],
    });
    const slow = app.app.get(Slow);
    const signed = signedWebhook(COMPANY);
    const idle = await timersAtRest(runtime);
    const sender = await RawConnection.open(app.url);
    await sender.write(headOf(signed));
    await until(() => runtime.pending > idle, 'the request');
    runtime.advance(7000);
    await sender.write(signed.body);
    await until(() => slow.started === 1, 'the handler');
    const status = sender.status();
    let responded = false;
    void status.then(() => (responded = true));
    runtime.advance(2999);
    // A response that comes too early would be sent during these turns of the event loop.
    await turns(50);
    expect(responded).toBe(false);
    runtime.advance(1);
    expect(await status).toBe(503);
    slow.finish();
    sender.socket.destroy();
  });
});

it('the module stops reading a body if other code has responded, and logs nothing', async () => {
  const runtime = new FakeRuntime();
  const server = express();
  const responses: (() => void)[] = [];
  server.use((_, response, next) => {
    responses.push(() => void response.writeHead(504).end());
    next();
  });
  await using app = await WebhookApplication.start({
    adapter: new ExpressAdapter(server),
    payments: { runtime },
  });
  // The first report of the process and the second heartbeat, so that no other timer ends within the next five seconds.
  runtime.advance(5002);
  app.log.lines.length = 0;
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown) => void unhandled.push(reason);
  process.on('unhandledRejection', onUnhandled);
  const sender = await RawConnection.open(app.url);
  await sender.write(headOf(signedWebhook(COMPANY)));
  await until(() => responses.length === 1 && runtime.nextIn === 5000, 'the request');
  responses[0]!();
  expect(await sender.status()).toBe(504);
  runtime.advance(5000);
  await sender.all();
  process.off('unhandledRejection', onUnhandled);
  expect(unhandled).toEqual([]);
  expect(app.log.lines).toEqual([]);
});
