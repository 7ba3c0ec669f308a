import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnPaymentEvent, PaymentInbox } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import { FakeRuntime } from '../../support/time/fake-runtime.js';
import { timersAtRest, turns, until } from '../../support/time/waiting.js';
import { Gate } from '../../support/time/gate.js';
import {
  onEachAdapter,
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

@Injectable()
class AbortsOnSignal {
  @OnPaymentEvent('*')
  async handle(_event: PaymentEvent, { signal }: PaymentEventContext): Promise<void> {
    contexts.push({ signal } as PaymentEventContext);
    await new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  }
}

function reset(): FakeRuntime {
  gate = new Gate();
  contexts = [];
  return new FakeRuntime();
}

/** Starts to close the application. `ended` becomes true when it is closed. */
function closing(app: { app: { close(): Promise<void> } }) {
  const state = { ended: false, end: Promise.resolve() };
  state.end = app.app.close().then(() => {
    state.ended = true;
  });
  return state;
}

const aFewTurns = (): Promise<void> => turns(20);

onEachAdapter((start) => {
  it('IN-24 close() waits for a running handler, responds 200 to its webhook request, and leaves no timer', async () => {
    const runtime = reset();
    await using app = await start({ providers: [Slow], payments: { runtime } });
    const response = app.send(webhookRequest());
    await gate.arrival;
    const close = closing(app);
    await aFewTurns();
    expect(close.ended).toBe(false);
    expect(contexts[0]!.signal.aborted).toBe(false);
    gate.open();
    expect((await response).status).toBe(200);
    await close.end;
    expect(runtime.pending).toBe(0);
    expect(contexts[0]!.signal.aborted).toBe(false);
  });
});

onOneAdapter('the end of handlers', (start) => {
  it('IN-24 close() responds to a waiting copy of an event when the handler of the event has ended', async () => {
    const runtime = reset();
    await using app = await start({ providers: [Slow], payments: { runtime } });
    const sent = webhookRequest();
    const first = app.send(sent);
    await gate.arrival;
    const before = await timersAtRest(runtime);
    const copies = [app.send(sent), app.send(sent)];
    await until(() => runtime.pending === before + 2, 'the deadlines of both copies');
    const close = closing(app);
    await aFewTurns();
    gate.open();
    for (const response of await Promise.all([first, ...copies]))
      expect([200, 503]).toContain(response.status);
    expect((await first).status).toBe(200);
    await close.end;
    expect(gate.entered).toBe(1);
  });

  it('IN-24 the application responds 503 to webhook requests while the memory inbox drains, and stores no event', async () => {
    reset();
    await using app = await start({ providers: [Slow] });
    const first = app.send(webhookRequest());
    await gate.arrival;
    const close = closing(app);
    await aFewTurns();
    expect(await app.send(webhookRequest({ id: 'late' }))).toMatchObject({
      status: 503,
      body: { code: 'inbox_unavailable' },
    });
    expect(await app.app.get(PaymentInbox).get('late', 'default')).toBeUndefined();
    gate.open();
    expect((await first).status).toBe(200);
    await close.end;
    expect(gate.entered).toBe(1);
  });

  it('IN-24 the application closes at once if no handler runs, even if deliveries are due later', async () => {
    const runtime = reset();
    gate.fail(new Error('broken'));
    await using app = await start({ providers: [Slow], payments: { runtime } });
    expect((await app.send(webhookRequest())).status).toBe(503);
    await app.app.close();
    expect(runtime.pending).toBe(0);
  });

  it('IN-24 the application aborts running handlers after drainMs, and does not count their attempts', async () => {
    const runtime = reset();
    await using app = await start({ providers: [AbortsOnSignal], payments: { runtime } });
    const response = app.send(webhookRequest({ id: 'e-1' }));
    await until(() => contexts.length === 1);
    const close = closing(app);
    await aFewTurns();
    runtime.advance(19_999);
    await aFewTurns();
    expect(contexts[0]!.signal.aborted).toBe(false);
    runtime.advance(1);
    await until(() => contexts[0]!.signal.aborted);
    expect(contexts[0]!.signal.reason).toMatchObject({
      name: 'AbortError',
      message: expect.stringContaining('closes'),
    });
    // The clock does not advance, so the handler ends only because its signal is aborted.
    await close.end;
    expect((await response).status).toBe(503);
    expect(await storedDelivery(app, 'e-1')).toMatchObject({ state: 'pending', attempts: 0 });
    expect(app.log.matching(/1 payment handlers still ran after 20000 ms/)).toHaveLength(1);
    expect(runtime.pending).toBe(0);
  });

  it('IN-24 the application closes once if close() is called twice', async () => {
    reset();
    gate.open();
    await using app = await start({ providers: [Slow] });
    await app.send(webhookRequest());
    await Promise.all([app.app.close(), app.app.close()]);
  });
});
