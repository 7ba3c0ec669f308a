// An application with a fast handler, and a handler whose attempts never end.
import { setTimeout } from 'node:timers/promises';
import { OnPaymentEvent, PaymentsModule } from 'nestjs-payments';
import type { PaymentEvent } from 'nestjs-payments';
import { paymentEvent, signedRequest } from 'nestjs-payments/testing';
import { SECRET } from '../load/webhook-requests.ts';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { listen, provider } from './nest-application.ts';
import { COMPANY, inboxOf } from './payments-options.ts';
import type { InboxChoice } from './payments-options.ts';

const RATE = 20;
/** Number of events with attempts that never end. The number is higher than the concurrency of a handler. */
const HANGING = 40;
const PLACES = 20;

const pending = new Map<string, () => void>();
const allHang = Promise.withResolvers<void>();
let hanging = 0;
const fast = ({ id }: PaymentEvent): void => pending.get(id)?.();
const hung = (): Promise<void> => {
  hanging += 1;
  if (hanging === PLACES) allHang.resolve();
  return new Promise(() => {});
};
const app = await listen('express', {
  imports: [
    PaymentsModule.forRoot({
      ...COMPANY,
      inbox: inboxOf(configuration() as InboxChoice),
      worker: { timeoutMs: 900_000, drainMs: 0 },
    }),
  ],
  providers: [
    provider(fast, OnPaymentEvent('works.*', { name: 'works' }) as MethodDecorator),
    provider(hung, OnPaymentEvent('hangs.*', { name: 'hangs' }) as MethodDecorator),
  ],
});
const url = await app.getUrl();

serveCommands(url, {
  /** Sends events to the handler that hangs, and resolves when its maximum number of attempts is running. */
  async hang() {
    for (let event = 0; event < HANGING; event += 1) void send('hangs.done');
    await allHang.promise;
  },
  /**
   * Sends `count` events at 20 per second, and resolves with p95 of the milliseconds from sending an event to the call
   * of its handler.
   */
  async p95(count: number): Promise<number> {
    const times: Promise<number>[] = [];
    for (let event = 0; event < count; event += 1) {
      times.push(timed());
      await setTimeout(1000 / RATE);
    }
    const sorted = (await Promise.all(times)).toSorted((a, b) => a - b);
    return sorted[Math.ceil(0.95 * sorted.length) - 1]!;
  },
  end: () => app.close(),
});

async function timed(): Promise<number> {
  const id = crypto.randomUUID();
  const start = performance.now();
  const took = new Promise<number>((resolve) =>
    pending.set(id, () => resolve(performance.now() - start)),
  );
  await send('works.done', id);
  return took;
}

async function send(eventType: string, id: string = crypto.randomUUID()): Promise<void> {
  const body = paymentEvent(eventType, { transactionId: id }, { id });
  const { method, headers, body: bytes, path } = signedRequest(body, { secret: SECRET });
  const response = await fetch(url + path, { method, headers, body: bytes });
  await response.arrayBuffer();
}
