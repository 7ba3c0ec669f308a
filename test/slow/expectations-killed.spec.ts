import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { fixed } from 'nestjs-payments';
import { json, ScriptedService, silence } from '../support/api/scripted-service.js';
import { durablePostgres, durableSqlite } from '../support/inbox/durable-inboxes.js';
import type { DurableInbox, InboxData } from '../support/inbox/durable-inboxes.js';
import { MerchantProcess } from '../support/inbox/merchant-process.js';
import type { OrdersSetup } from '../support/inbox/merchant-process.js';
import { webhookRequest } from '../support/webhook/handler-application.js';
import { eventually } from '../support/time/waiting.js';

/** The steps at which a process is killed. Each is the last step that an order has completed or begun. */
const HALTS = ['expected', 'requesting', 'requested', 'attached', 'polling', 'handling', 'booked'];
/** `created`: between the two statements before the request. `ignored`: the service received the request, and did nothing. */
const REQUEST_HALTS = ['created', 'ignored', ...HALTS];
const PROCESSES = 2;
/** Orders of each process. Each step halts orders with an even and with an odd number. */
const ORDERS = 9;
/** The shortest lease, so that deliveries of dead processes are freed soon. */
const worker = { leaseMs: 1000, retry: fixed(Array<number>(15).fill(1)) };

let service: ScriptedService;
let running: MerchantProcess[] = [];
/** The transactions by reference. All are paid at once. */
let transactions: Map<string, string>;
/** How many payments were created with each reference. */
let created: Map<string, number>;
/** The references whose request the service has ignored. */
let ignored: Set<string>;
beforeEach(async () => {
  transactions = new Map();
  created = new Map();
  ignored = new Set();
  service = await ScriptedService.start();
  service.onCall = (request, response) => {
    const { pathname, searchParams } = new URL(request.path, 'http://service');
    if (request.method === 'POST') {
      const { externalReference } = JSON.parse(request.body) as { externalReference: string };
      if (externalReference.includes('ignored') && !ignored.has(externalReference)) {
        ignored.add(externalReference);
        return silence(request, response);
      }
      const count = created.get(externalReference) ?? 0;
      created.set(externalReference, count + 1);
      const transactionId = `t-${externalReference}-${count}`;
      transactions.set(externalReference, transactionId);
      // The process is killed while it waits for the response.
      const respond = externalReference.includes('requesting')
        ? silence
        : json(201, { transactionId });
      return respond(request, response);
    }
    if (pathname !== '/v1/transactions')
      return json(200, { status: 'complete' })(request, response);
    const found = transactions.get(searchParams.get('externalReference')!);
    return json(200, { transactions: found === undefined ? [] : [found] })(request, response);
  };
});
afterEach(async () => {
  await Promise.all(running.map((merchant) => merchant.kill()));
  running = [];
  await service.stop();
});

/** Starts a process that places these orders. */
async function start(
  data: InboxData,
  place: OrdersSetup['place'],
  more: Partial<OrdersSetup> = {},
): Promise<MerchantProcess> {
  const orders = { baseUrl: service.baseUrl, place, ...more };
  const merchant = await MerchantProcess.start(data, { worker, orders });
  running.push(merchant);
  return merchant;
}

/** Sends the webhook requests of the orders until the process has killed itself. */
async function untilKilled(merchant: MerchantProcess, webhooks: number): Promise<void> {
  const paid = () => merchant.lines.filter((line) => line.startsWith('paid '));
  const sent: Promise<unknown>[] = [];
  for (let n = 0; n < webhooks; n += 1) {
    await merchant.until(() => paid().length > n);
    const [, externalReference, transactionId] = paid()[n]!.split(' ');
    const data = { externalReference, transactionId };
    const request = webhookRequest({ eventType: 'transaction.completed', data });
    sent.push(fetch(merchant.url + request.path, request).catch(() => 'killed'));
  }
  const { signal } = await merchant.ended;
  const log = signal === null ? merchant.output : '';
  expect({ signal, log }).toEqual({ signal: 'SIGKILL', log: '' });
  await Promise.all(sent);
}

/** The tests run on both stores at once, because they mostly wait for the lease of a request to end. */
describe('on SQLite and PostgreSQL', () => {
  const stores = [durableSqlite(), durablePostgres()];
  /** The references of the orders on this store, in order. */
  const onStore = ({ kind }: DurableInbox, references: Iterable<string>): string[] =>
    [...references].filter((reference) => reference.startsWith(kind)).toSorted();

  it(`EX-08 each of ${PROCESSES * ORDERS} orders is booked once if the customer pays, although kill -9 interrupts the order between two steps`, async () => {
    await Promise.all(
      stores.map(async (durable) => {
        const data = await durable.data();
        for (let n = 0; n < PROCESSES; n += 1) {
          const place = Array.from({ length: ORDERS }, (_, index) => {
            const round = n * ORDERS + index;
            const halt = HALTS[round % HALTS.length]!;
            // Nothing polls an order whose webhook request has arrived.
            const webhook =
              round % 2 === 1 && !['expected', 'requesting', 'polling'].includes(halt);
            return { reference: `${durable.kind}-${round}-${halt}`, halt, webhook };
          });
          const merchant = await start(data, place);
          await untilKilled(merchant, place.filter(({ webhook }) => webhook).length);
        }
        const paid = onStore(durable, transactions.keys());
        expect(paid.filter((reference) => reference.includes('requesting'))).toHaveLength(3);
        expect(paid.length).toBe(PROCESSES * ORDERS - 3);
        const last = await start(data, []);
        await eventually(
          async () => expect((await data.effects()).toSorted()).toEqual(paid),
          90_000,
        );
        await last.kill();
        expect((await data.effects()).toSorted()).toEqual(paid);
      }),
    );
  }, 180_000);

  it(`EX-15 each of ${PROCESSES * ORDERS} orders is requested once and booked once, although kill -9 interrupts request() between two steps and the customer clicks again`, async () => {
    await Promise.all(
      stores.map(async (durable) => {
        const data = await durable.data();
        const all: string[] = [];
        for (let n = 0; n < PROCESSES; n += 1) {
          const place = Array.from({ length: ORDERS }, (_, index) => {
            const round = n * ORDERS + index;
            const halt = REQUEST_HALTS[round % REQUEST_HALTS.length]!;
            const webhook = round % 2 === 1 && ['requested', 'handling', 'booked'].includes(halt);
            return { reference: `${durable.kind}-${round}-${halt}`, halt, webhook };
          });
          const merchant = await start(data, place, { request: true, again: all });
          await untilKilled(merchant, place.filter(({ webhook }) => webhook).length);
          all.push(...place.map(({ reference }) => reference));
        }
        all.sort();
        const last = await start(data, [], { request: true, again: all });
        // The outcome of a request is unknown 60 s after its start; then, the request is sent again unless the service has it.
        await eventually(
          async () => expect((await data.effects()).toSorted()).toEqual(all),
          120_000,
        );
        await last.kill();
        expect((await data.effects()).toSorted()).toEqual(all);
        const requested = onStore(durable, created.keys());
        expect(requested.map((reference) => [reference, created.get(reference)])).toEqual(
          all.map((reference) => [reference, 1]),
        );
      }),
    );
  }, 240_000);
});
