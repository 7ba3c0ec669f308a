import { setTimeout } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { memoryInbox, OnPaymentEvent } from 'nestjs-payments';
import type { InboxDefinition, PaymentEvent } from 'nestjs-payments';
import { INBOX_STORE } from '../../../libs/payments/dist/inbox/store/inbox-store.js';
import type { InboxStore } from '../../../libs/payments/dist/inbox/store/inbox-store.js';
import { incoming } from '../../store-contract/contract-fixtures.ts';
import { eventually } from '../../support/time/waiting.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { inboxOf } from '../../support/inbox/inbox-application.js';
import { WebhookApplication } from '../../support/webhook/webhook-application.js';
import { durableSqlite } from '../../support/inbox/durable-inboxes.js';

// `npm run bench -- isolation` measures the time from the sending of an event until the event is handled.

/** The number of events that {@link ThreeHandlers.work} sends to the fast handler, one after the other. */
const EVENTS = 20;
const MANY = 10_000;

/** An application with a fast, a hanging and a busy handler, and a record of their attempts. */
class ThreeHandlers {
  hanging = 0;
  busy = 0;
  readonly handled = new Set<string>();

  start(inbox: InboxDefinition): Promise<WebhookApplication> {
    // eslint-disable-next-line @typescript-eslint/no-this-alias
    const handlers = this;
    @Injectable()
    class Handlers {
      @OnPaymentEvent('works.*', { name: 'works' })
      works({ id }: PaymentEvent): void {
        handlers.handled.add(id);
      }

      @OnPaymentEvent('hangs.*', { name: 'hangs' })
      async hangs(): Promise<void> {
        handlers.hanging += 1;
        await new Promise(() => {});
      }

      @OnPaymentEvent('busy.*', { name: 'busy' })
      async busy(): Promise<void> {
        handlers.busy += 1;
        await setTimeout(2);
      }
    }
    return WebhookApplication.start({
      providers: [Handlers],
      payments: { inbox, worker: { drainMs: 0 } },
    });
  }

  /** Sends events to the fast handler, each after the previous one was handled. */
  async work(app: WebhookApplication): Promise<void> {
    for (let event = 0; event < EVENTS; event += 1) {
      const id = crypto.randomUUID();
      await app.send(webhookRequest({ id, eventType: 'works.done', data: { transactionId: id } }));
      await eventually(() => expect(this.handled).toContain(id));
    }
  }
}

/** Sends events, without waiting for the responses. */
function send(app: WebhookApplication, eventType: string, count: number): void {
  for (let event = 0; event < count; event += 1) {
    void app.send(webhookRequest({ id: `${eventType}-${event}`, eventType })).catch(() => {});
  }
}

/** Stores 10,000 pending deliveries of the handler `busy`. */
async function storeMany(app: WebhookApplication): Promise<void> {
  const store: InboxStore = app.app.get(INBOX_STORE);
  // The worker registers its handlers in the background. This changes the catalog version that receive() requires.
  await eventually(async () => expect((await store.catalog()).handlers).toHaveLength(3));
  const { version } = await store.catalog();
  for (let first = 0; first < MANY; first += 500) {
    await store.receive(
      Array.from({ length: 500 }, (_, index) => {
        const id = `busy-${first + index}`;
        const event = { id, eventType: 'busy.done', timestamp: new Date().toISOString(), data: {} };
        return incoming({
          company: 'default',
          id,
          eventType: 'busy.done',
          raw: Buffer.from(JSON.stringify(event)),
          handlers: ['busy'],
          catalogVersion: version,
        });
      }),
    );
  }
}

function isolation(open: () => Promise<InboxDefinition>): void {
  it('IN-29 a handler handles its events while 20 attempts of another handler hang', async () => {
    const handlers = new ThreeHandlers();
    await using app = await handlers.start(await open());
    send(app, 'hangs.done', 40);
    await eventually(() => expect(handlers.hanging).toBe(20));
    await handlers.work(app);
    expect(handlers.hanging).toBe(20);
  });

  it('IN-29 10,000 resumed or redriven deliveries of another handler do not delay new events', async () => {
    const handlers = new ThreeHandlers();
    await using app = await handlers.start(await open());
    const inbox = inboxOf(app);
    await inbox.pause('busy');
    await storeMany(app);
    await inbox.resume('busy');
    await eventually(() => expect(handlers.busy).toBeGreaterThan(100), 45_000);
    await handlers.work(app);
    expect(handlers.busy).toBeLessThan(MANY);
    await inbox.pause('busy');
    await inbox.skip({ handler: 'busy', state: 'pending' });
    await inbox.resume('busy');
    const before = handlers.busy;
    const redriven = inbox.redrive({
      handler: 'busy',
      state: 'skipped',
      force: true,
    });
    await eventually(() => expect(handlers.busy).toBeGreaterThan(before + 100));
    await handlers.work(app);
    expect(handlers.busy).toBeLessThan(MANY);
    // The application closes before the redrive has ended.
    redriven.catch(() => {});
  });
}

describe('on memory', () => isolation(async () => memoryInbox({ maxEvents: 100_000 })));

describe('on sqlite', () => {
  const durable = durableSqlite();
  isolation(async () => (await durable.data()).inbox());
});
