import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { memoryInbox, none, OnPaymentEvent } from 'nestjs-payments';
import type { InboxDefinition, PaymentEvent } from 'nestjs-payments';
import { INBOX_STORE } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import type { InboxStore } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { eventually } from '../support/time/waiting.js';
import { delivery } from '../support/webhook/handler-application.js';
import { inboxOf } from '../support/inbox/inbox-application.js';
import { onEachDurableInbox } from '../support/inbox/durable-inboxes.js';
import { WebhookApplication } from '../support/webhook/webhook-application.js';

// `npm run bench -- isolation` measures the time from sending to handled.

/** Events of the fast handler that are sent, one after the other. */
const EVENTS = 20;
const MANY = 10_000;

/** What an application of one fast handler and three others did. */
class Stage {
  hanging = 0;
  failing = 0;
  busy = 0;
  readonly handled = new Set<string>();

  start(inbox: InboxDefinition): Promise<WebhookApplication> {
    // eslint-disable-next-line @typescript-eslint/no-this-alias
    const stage = this;
    @Injectable()
    class Handlers {
      @OnPaymentEvent('works.*', { name: 'works' })
      works({ id }: PaymentEvent): void {
        stage.handled.add(id);
      }

      @OnPaymentEvent('hangs.*', { name: 'hangs' })
      async hangs(): Promise<void> {
        stage.hanging += 1;
        await new Promise(() => {});
      }

      @OnPaymentEvent('fails.*', { name: 'fails', retry: none })
      async fails(): Promise<void> {
        stage.failing += 1;
        await setTimeout(10_000, undefined, { ref: false });
        throw new Error('the e-mail server does not answer');
      }

      @OnPaymentEvent('busy.*', { name: 'busy' })
      async busy(): Promise<void> {
        stage.busy += 1;
        await setTimeout(2);
      }
    }
    return WebhookApplication.start({
      providers: [Handlers],
      payments: { inbox, worker: { drainMs: 0 } },
    });
  }

  /** Sends events to the fast handler, each after the one before was handled. */
  async work(app: WebhookApplication): Promise<void> {
    for (let event = 0; event < EVENTS; event += 1) {
      const id = crypto.randomUUID();
      await app.send(delivery({ id, eventType: 'works.done', data: { transactionId: id } }));
      await eventually(() => expect(this.handled).toContain(id));
    }
  }
}

/** Sends events, without waiting for the answers. */
function send(app: WebhookApplication, eventType: string, count: number): void {
  for (let event = 0; event < count; event += 1) {
    void app.send(delivery({ id: `${eventType}-${event}`, eventType })).catch(() => {});
  }
}

/** Stores many events of the handler `busy`, as pending. */
async function storeMany(app: WebhookApplication): Promise<void> {
  const store: InboxStore = app.app.get(INBOX_STORE);
  const { version } = await store.catalog();
  for (let first = 0; first < MANY; first += 500) {
    await store.receive(
      Array.from({ length: 500 }, (_, index) => {
        const id = `busy-${first + index}`;
        const event = {
          id,
          eventType: 'busy.done',
          timestamp: new Date().toISOString(),
          data: {},
        };
        return {
          company: 'default',
          id,
          eventType: 'busy.done',
          occurredAt: new Date(),
          orderingKey: null,
          onceKey: null,
          raw: Buffer.from(JSON.stringify(event)),
          headers: {},
          handlers: ['busy'],
          catalogVersion: version,
          assign: null,
          stale: false,
        };
      }),
    );
  }
}

function isolation(open: () => Promise<InboxDefinition>): void {
  it('IN-29 handles events while 20 runs of another handler hang', async () => {
    const stage = new Stage();
    await using app = await stage.start(await open());
    send(app, 'hangs.done', 40);
    await eventually(() => expect(stage.hanging).toBe(20));
    await stage.work(app);
    expect(stage.hanging).toBe(20);
  }, 60_000);

  it('IN-29 handles events while 20 runs of another handler take 10 s and fail', async () => {
    const stage = new Stage();
    await using app = await stage.start(await open());
    // What arrives in 6 s at 10 events/s.
    send(app, 'fails.done', 60);
    await eventually(() => expect(stage.failing).toBe(20));
    await stage.work(app);
    expect(stage.failing).toBe(20);
  }, 60_000);

  it('IN-29 handles events before 10,000 deliveries of another handler that were resumed, then redriven', async () => {
    const stage = new Stage();
    await using app = await stage.start(await open());
    const inbox = inboxOf(app);
    await inbox.pause('busy');
    await storeMany(app);
    await inbox.resume('busy');
    await eventually(() => expect(stage.busy).toBeGreaterThan(100));
    await stage.work(app);
    expect(stage.busy).toBeLessThan(MANY);
    await inbox.pause('busy');
    await inbox.skip({ handler: 'busy', state: 'pending' });
    await inbox.resume('busy');
    const before = stage.busy;
    const redriven = inbox.redrive({
      handler: 'busy',
      state: 'skipped',
      force: true,
      ratePerSecond: Infinity,
    });
    await eventually(() => expect(stage.busy).toBeGreaterThan(before + 100));
    await stage.work(app);
    expect(stage.busy).toBeLessThan(MANY);
    // The end of the application interrupts it.
    redriven.catch(() => {});
  }, 60_000);
}

describe('on memory', () => isolation(async () => memoryInbox({ maxEvents: 100_000 })));

onEachDurableInbox((stage) => isolation(async () => (await stage.data()).inbox()));
