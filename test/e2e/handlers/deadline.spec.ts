import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { until } from '../../support/time/waiting.js';
import { Gate } from '../../support/time/gate.js';
import {
  onOneAdapter,
  storedDelivery,
  webhookRequest,
} from '../../support/webhook/handler-application.js';

let gate: Gate;
let contexts: PaymentEventContext[] = [];

@Injectable()
class Slow {
  @OnPaymentEvent('*')
  async handle(_event: PaymentEvent, context: PaymentEventContext): Promise<void> {
    contexts.push(context);
    await gate.pass();
  }
}

onOneAdapter('the deadline of the response', (start) => {
  it('the application responds 503 at the deadline; the handler continues, and a copy of the event waits for the handler', async () => {
    gate = new Gate();
    contexts = [];
    const runtime = new FakeRuntime();
    await using app = await start({ providers: [Slow], payments: { runtime } });
    const sent = webhookRequest({ id: 'e-1' });
    const first = app.send(sent);
    await gate.arrival;
    runtime.advance(24_999);
    expect(contexts[0]!.signal.aborted).toBe(false);
    runtime.advance(1);
    expect(await first).toMatchObject({ status: 503, body: { code: 'deadline_passed' } });
    let responded = false;
    const copy = app.send(sent).then((response) => {
      responded = true;
      return response;
    });
    const other = app.send(webhookRequest({ id: 'e-2' }));
    await until(() => gate.entered === 2);
    // The handler runs for the other event, and was not started again for the first.
    expect({ responded, ids: contexts.length, most: gate.most }).toEqual({
      responded: false,
      ids: 2,
      most: 2,
    });
    gate.open();
    expect(await copy).toMatchObject({ status: 200, body: { status: 'duplicate' } });
    expect(await other).toMatchObject({ status: 200 });
    expect(await storedDelivery(app, 'e-1')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('the application runs handlers outside the async context of the webhook request that woke the worker', async () => {
    gate = new Gate();
    gate.open();
    const requests = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    @Injectable()
    class Curious {
      @OnPaymentEvent('*')
      async handle(): Promise<void> {
        seen.push(requests.getStore());
        await gate.pass();
        seen.push(requests.getStore());
      }
    }
    await using app = await start({
      providers: [Curious],
      main: (nest) => {
        nest.use((_request: unknown, _response: unknown, next: () => void) => {
          requests.run('a request', next);
        });
      },
    });
    await app.send(webhookRequest());
    await app.send(webhookRequest());
    expect(seen).toEqual([undefined, undefined, undefined, undefined]);
  });
});
