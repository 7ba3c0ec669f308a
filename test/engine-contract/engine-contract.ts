import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type {
  EngineMessage,
  EngineStatus,
  EventRelay,
  MessageSource,
  StoreOutcome,
  TakenMessage,
} from 'nestjs-payments';
import { TcpProxy } from '../chaos/tcp-proxy.ts';
import { durableSqlite } from '../support/inbox/durable-inboxes.ts';
import { inboxOf, post, startOn, states } from '../support/inbox/inbox-application.ts';
import { eventually } from '../support/time/waiting.ts';

/** An adapter of the engine under test. */
export type EngineAdapter = EventRelay & MessageSource;

/** A message at the engine's place for dead letters. */
export interface DeadLetter {
  readonly code: string | undefined;
  readonly body: Uint8Array;
}

/** A server of the engine under test, in a process of its own. */
export interface RunningEngine extends AsyncDisposable {
  /** The address to which adapters connect. Without it, the cases that cut a connection do nothing. */
  readonly url?: string;
  /** Names of adapters whose service `ledger` exists already. Each case takes one, and need not wait for its creation. */
  readonly prepared?: string[];
  /** Kills the server with SIGKILL. */
  kill(): Promise<void>;
  /** Starts the server again, on the same port and with the same data. */
  restart(): Promise<void>;
  /**
   * Creates an adapter with a connection of its own. Adapters with different names share no message. Once `open()` of an
   * adapter with a service has resolved, each message that is published later reaches the service.
   */
  adapter(name: string, options?: AdapterOptions): EngineAdapter;
  /** Reads the dead letters of a service. */
  deadLetters(name: string, service: string): Promise<readonly DeadLetter[]>;
  /** Adds a message that the module did not write, with the given body, for the service to take. */
  addForeignMessage(name: string, service: string, body: Uint8Array): Promise<void>;
}

/** Options of an adapter that the cases need. */
export interface AdapterOptions {
  readonly service?: string;
  readonly maxInProgress?: number;
  /** The address of a proxy, instead of {@link RunningEngine.url}. */
  readonly url?: string;
}

/** What an engine can do, and how its server starts. */
export interface EngineUnderTest {
  readonly name: string;
  /** Whether this machine has the server. If not, the cases are skipped. */
  readonly installed: boolean;
  /** Whether one process that stores one message at a time takes the messages of one key in their order. */
  readonly keepsOrder: boolean;
  readonly start: () => Promise<RunningEngine>;
}

/** The longest time until an engine delivers a message of a lost connection again, in milliseconds. */
const REDELIVERY_MS = 90_000;
const ACKNOWLEDGE: StoreOutcome = { action: 'acknowledge' };

/** A message as the module creates it. */
export function engineMessage(fields: { id?: string; transaction?: string } = {}): EngineMessage {
  const { id = randomUUID(), transaction = randomUUID() } = fields;
  const key = `default/${transaction}`;
  const event = { id, eventType: 'transaction.completed', data: { transactionId: transaction } };
  return {
    id: `default/${id}`,
    key,
    attributes: {
      specversion: '1.0',
      id,
      source: '/payments/default',
      type: 'transaction.completed',
      time: '2026-01-31T12:00:00.000Z',
      datacontenttype: 'application/json',
      company: 'default',
      signature: `sha512=${'a'.repeat(128)}`,
      origin: 'webhook',
      partitionkey: key,
      subject: transaction,
    },
    body: Buffer.from(JSON.stringify(event)),
  };
}

/** A process of a worker service: takes messages, and consumes again after an error, as the module does. */
class TestService implements AsyncDisposable {
  readonly taken: TakenMessage[] = [];
  /** The errors with which `consume` rejected. */
  readonly errors: unknown[] = [];
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;

  private constructor(
    private readonly adapter: EngineAdapter,
    store: (message: TakenMessage) => StoreOutcome | Promise<StoreOutcome>,
  ) {
    this.#ended = this.#run(store);
  }

  static async start(
    adapter: EngineAdapter,
    store: (message: TakenMessage) => StoreOutcome | Promise<StoreOutcome> = () => ACKNOWLEDGE,
  ): Promise<TestService> {
    await adapter.open?.();
    return new TestService(adapter, store);
  }

  /** The ids of the taken messages, in the order in which they arrived. */
  get ids(): (string | undefined)[] {
    return this.taken.map(({ attributes }) => attributes['id']);
  }

  /** Ends consuming, as a closing application does, and keeps the connection. */
  async end(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
    await this.adapter.close?.();
  }

  async #run(
    store: (message: TakenMessage) => StoreOutcome | Promise<StoreOutcome>,
  ): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await this.adapter.consume(
          async (message) => {
            this.taken.push(message);
            return store(message);
          },
          { signal },
        );
      } catch (error) {
        this.errors.push(error);
        await setTimeout(100);
      }
    }
  }
}

/** Defines the cases that an adapter must pass against a real server. */
export function describeEngine({ name: engine, installed, keepsOrder, start }: EngineUnderTest) {
  const describeIf = installed ? describe : describe.skip;
  describeIf(engine, () => {
    let running: RunningEngine;
    let name: string;
    let ending: AsyncDisposableStack;
    const { signal } = new AbortController();
    const durable = durableSqlite();

    beforeAll(async () => {
      running = await start();
    });
    beforeEach(() => {
      name = running.prepared?.pop() ?? `t${randomUUID().slice(0, 8)}`;
      ending = new AsyncDisposableStack();
    });
    afterEach(() => ending.disposeAsync());
    afterAll(async () => {
      await running?.[Symbol.asyncDispose]();
    });

    async function relay(): Promise<EngineAdapter> {
      const adapter = running.adapter(name);
      ending.defer(async () => adapter.close?.());
      await adapter.open?.();
      return adapter;
    }

    async function service(
      service: string,
      store?: (message: TakenMessage) => StoreOutcome | Promise<StoreOutcome>,
      maxInProgress = 100,
    ): Promise<TestService> {
      const adapter = running.adapter(name, { service, maxInProgress });
      return ending.use(await TestService.start(adapter, store));
    }

    it(`EN-02 ${engine} transports the body byte for byte, and every attribute`, async () => {
      const ledger = await service('ledger');
      const gateway = await relay();
      const message = engineMessage({ id: 'Zürich 1%"é漢\u{1F600}', transaction: 'a b/c.d*>:e' });
      const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
      const body = Buffer.concat([message.body, bytes]);
      await gateway.publish({ ...message, body }, { signal });
      await eventually(() => expect(ledger.taken).toHaveLength(1));
      expect(Buffer.from(ledger.taken[0]!.body).equals(body)).toBe(true);
      expect(ledger.taken[0]!.attributes).toMatchObject(message.attributes);
      expect(ledger.taken[0]!.deliveries).toBe(1);
    });

    it(`EN-02 ${engine} transports a body of 500,000 bytes`, async () => {
      const ledger = await service('ledger');
      const gateway = await relay();
      const body = Buffer.alloc(500_000, 'x');
      await gateway.publish({ ...engineMessage(), body }, { signal });
      await eventually(() => expect(ledger.taken).toHaveLength(1));
      expect(Buffer.from(ledger.taken[0]!.body).equals(body)).toBe(true);
    });

    it(`EN-04 with ${engine}, two services each take every event, and two processes of one service share the events`, async () => {
      const ledgers = [
        await service('ledger', undefined, 1),
        await service('ledger', undefined, 1),
      ];
      const mail = await service('mail');
      const gateway = await relay();
      const messages = Array.from({ length: 40 }, () => engineMessage());
      for (const message of messages) await gateway.publish(message, { signal });
      const ids = new Set(messages.map(({ attributes }) => attributes.id));
      await eventually(() => {
        const shared = ledgers.flatMap((one) => one.ids);
        expect([mail.ids.length, shared.length]).toEqual([40, 40]);
        expect([new Set(mail.ids), new Set(shared)]).toEqual([ids, ids]);
      });
    });

    it(`EN-04 with ${engine}, a service takes the messages that were published while it was not running`, async () => {
      const before = await service('ledger');
      await before.end();
      const gateway = await relay();
      const message = engineMessage();
      await gateway.publish(message, { signal });
      const after = await service('ledger');
      await eventually(() => expect(after.ids).toEqual([message.attributes.id]));
      expect(before.ids).toEqual([]);
    });

    it(`EN-03 ${engine} delivers a message again after the delay that the module requests, 30 times in a row`, async () => {
      let failures = 30;
      const at: number[] = [];
      const ledger = await service('ledger', () => {
        at.push(performance.now());
        if (failures === 0) return ACKNOWLEDGE;
        failures -= 1;
        return { action: 'retry', afterMs: 20 };
      });
      const gateway = await relay();
      await gateway.publish(engineMessage(), { signal });
      await eventually(() => expect(failures).toBe(0));
      await eventually(() => expect(ledger.taken).toHaveLength(31));
      expect(Math.min(...at.slice(1).map((time, index) => time - at[index]!))).toBeGreaterThan(15);
      expect(ledger.taken[1]!.deliveries).toBeGreaterThan(1);
      expect(ledger.taken[30]!.deliveries).toBeGreaterThanOrEqual(ledger.taken[1]!.deliveries);
      expect(await running.deadLetters(name, 'ledger')).toEqual([]);
    });

    it(`EN-03 with ${engine}, a message that waits for its next delivery does not block other messages`, async () => {
      const slow = engineMessage();
      const ledger = await service('ledger', ({ attributes }) =>
        attributes['id'] === slow.attributes.id
          ? { action: 'retry', afterMs: 3_600_000 }
          : ACKNOWLEDGE,
      );
      const gateway = await relay();
      await gateway.publish(slow, { signal });
      await eventually(() => expect(ledger.ids).toEqual([slow.attributes.id]));
      const others = Array.from({ length: 20 }, () => engineMessage());
      for (const message of others) await gateway.publish(message, { signal });
      await eventually(() => expect(new Set(ledger.ids).size).toBe(21));
    });

    it(`EN-03 ${engine} delivers a message that a process has not acknowledged to another process`, async () => {
      const hanging = Promise.withResolvers<StoreOutcome>();
      const first = await service('ledger', () => hanging.promise, 1);
      const gateway = await relay();
      const message = engineMessage();
      await gateway.publish(message, { signal });
      await eventually(() => expect(first.taken).toHaveLength(1));
      const ended = first.end();
      hanging.resolve({ action: 'retry', afterMs: 0 });
      await ended;
      const second = await service('ledger');
      await eventually(() => expect(second.ids).toContain(message.attributes.id));
    });

    it(`EN-05 ${engine} keeps a rejected message with its code as a dead letter, and does not deliver the message again`, async () => {
      const bad = engineMessage();
      const ledger = await service('ledger', ({ attributes }) =>
        attributes['id'] === bad.attributes.id
          ? { action: 'reject', code: 'signature_mismatch' }
          : ACKNOWLEDGE,
      );
      const gateway = await relay();
      await gateway.publish(bad, { signal });
      const good = engineMessage();
      await gateway.publish(good, { signal });
      await eventually(() => expect(ledger.ids).toContain(good.attributes.id));
      await eventually(async () => {
        const [letter, ...others] = await running.deadLetters(name, 'ledger');
        expect(others).toEqual([]);
        expect(letter!.code).toBe('signature_mismatch');
        expect(Buffer.from(letter!.body).equals(Buffer.from(bad.body))).toBe(true);
      });
      await ledger.end();
      const later = await service('ledger');
      const last = engineMessage();
      await gateway.publish(last, { signal });
      await eventually(() => expect(later.ids).toEqual([last.attributes.id]));
    });

    it(`EN-05 ${engine} passes messages of other programs to the module, and they block no other message`, async () => {
      const reject: StoreOutcome = { action: 'reject', code: 'company_unknown' };
      const ledger = await service('ledger', ({ attributes }) =>
        attributes['company'] === undefined ? reject : ACKNOWLEDGE,
      );
      const foreign = Buffer.from('not an event');
      await running.addForeignMessage(name, 'ledger', foreign);
      const gateway = await relay();
      const message = engineMessage();
      await gateway.publish(message, { signal });
      await eventually(() => expect(ledger.ids).toContain(message.attributes.id));
      await eventually(async () => {
        const letters = await running.deadLetters(name, 'ledger');
        expect(letters.map(({ code }) => code)).toEqual(['company_unknown']);
      });
    });

    const orderIt = keepsOrder ? it : it.skip;
    orderIt(`EN-06 ${engine} keeps the order of the events of a transaction`, async () => {
      const gateway = await relay();
      const before = await service('ledger', undefined, 1);
      await before.end();
      const messages = Array.from({ length: 20 }, () => engineMessage({ transaction: 'one' }));
      for (const message of messages) await gateway.publish(message, { signal });
      const ledger = await service('ledger', undefined, 1);
      await eventually(() => expect(ledger.taken).toHaveLength(20));
      expect(ledger.ids).toEqual(messages.map(({ attributes }) => attributes.id));
    });

    it(`EN-10 with ${engine}, at most "maxInProgress" messages are stored at the same time`, async () => {
      let [running, most] = [0, 0];
      const gates: (() => void)[] = [];
      const ledger = await service(
        'ledger',
        async () => {
          running += 1;
          most = Math.max(most, running);
          await new Promise<void>((resolve) => gates.push(resolve));
          running -= 1;
          return ACKNOWLEDGE;
        },
        3,
      );
      const gateway = await relay();
      for (let n = 0; n < 12; n += 1) await gateway.publish(engineMessage(), { signal });
      for (let n = 0; n < 12; n += 1) {
        await eventually(() => expect(gates.length).toBeGreaterThan(0));
        gates.shift()!();
      }
      await eventually(() => expect(ledger.taken).toHaveLength(12));
      expect(most).toBe(3);
    });

    it(`EN-10 ${engine} stops taking messages when the application closes, and settles the messages in progress`, async () => {
      const gate = Promise.withResolvers<StoreOutcome>();
      const first = await service('ledger', () => gate.promise, 1);
      const gateway = await relay();
      const [one, two] = [engineMessage(), engineMessage()];
      await gateway.publish(one, { signal });
      await eventually(() => expect(first.taken).toHaveLength(1));
      await gateway.publish(two, { signal });
      const ended = first.end();
      gate.resolve(ACKNOWLEDGE);
      await ended;
      expect(first.ids).toEqual([one.attributes.id]);
      expect(first.errors).toEqual([]);
      const second = await service('ledger');
      await eventually(() => expect(second.ids).toEqual([two.attributes.id]));
    });

    it(`EN-01 ${engine} publishes nothing after the signal was aborted`, async () => {
      const gateway = await relay();
      const aborted = AbortSignal.abort(new Error('closing'));
      await expect(gateway.publish(engineMessage(), { signal: aborted })).rejects.toThrow();
    });

    it(`EN-11 ${engine} reports how many messages wait for a service, and its dead letters`, async () => {
      const gateway = await relay();
      if (gateway.status === undefined) return;
      const before = await service('ledger');
      await before.end();
      for (let n = 0; n < 3; n += 1) await gateway.publish(engineMessage(), { signal });
      expect(await gateway.status()).toEqual({});
      const monitor = running.adapter(name, { service: 'ledger' });
      ending.defer(async () => monitor.close?.());
      const reported = (expected: EngineStatus) =>
        eventually(async () => expect(await monitor.status!()).toEqual(expected));
      await reported({ lag: 3, deadLetters: 0 });
      await service('ledger', () => ({ action: 'reject', code: 'company_unknown' }));
      await reported({ lag: 0, deadLetters: 3 });
    });

    it(`EN-11 an adapter of ${engine} shows no secret, attribute or body`, async () => {
      const { inspect } = await import('node:util');
      const gateway = await relay();
      await service('ledger');
      const message = engineMessage();
      await gateway.publish(message, { signal });
      const shown = JSON.stringify(gateway) + inspect(gateway, { depth: 10 });
      for (const hidden of [message.attributes.signature, message.attributes.id, 's3cret-password'])
        expect(shown).not.toContain(hidden);
    });

    it(`EN-10 with ${engine}, no event is lost while the relay or a handler is paused, and each event is handled once after the pause`, async () => {
      const handled: string[] = [];
      const source = running.adapter(name, { service: 'ledger' });
      const book = ({ id }: { readonly id: string }) => void handled.push(id);
      const ledger = ending.use(await startOn(await durable.data(), { book }, { source }));
      const relay = running.adapter(name);
      const gateway = ending.use(await startOn(await durable.data(), {}, { relay }));
      await inboxOf(ledger).pause('book');
      expect(await post(gateway, 'e1', {})).toBe(200);
      await eventually(async () =>
        expect(await states(ledger, 'e1')).toEqual({ book: 'pending 0' }),
      );
      await inboxOf(gateway).pause('relay');
      expect(await post(gateway, 'e2', {})).toBe(200);
      await inboxOf(ledger).resume('book');
      await eventually(() => expect(handled).toEqual(['e1']));
      expect(await states(gateway, 'e2')).toEqual({ relay: 'pending 0' });
      await inboxOf(gateway).resume('relay');
      await eventually(() => expect(handled).toEqual(['e1', 'e2']));
    });

    it(`EN-01 with ${engine}, an event is handled once, even if the connection is cut before the engine has confirmed the event`, async () => {
      if (running.url === undefined) return;
      const handled: string[] = [];
      const source = running.adapter(name, { service: 'ledger' });
      const book = ({ id }: { readonly id: string }) => void handled.push(id);
      ending.use(await startOn(await durable.data(), { book }, { source }));
      const [proxy, url] = await TcpProxy.before(running.url);
      ending.use(proxy);
      const relay = running.adapter(name, { url });
      const gateway = ending.use(await startOn(await durable.data(), {}, { relay }));
      let cuts = 0;
      proxy.cutAfter = (sent) => sent.includes('sha512=') && (cuts += 1) === 1;
      for (const id of ['e1', 'e2', 'e3']) expect(await post(gateway, id, {})).toBe(200);
      await eventually(() => expect(new Set(handled)).toEqual(new Set(['e1', 'e2', 'e3'])));
      await eventually(async () => {
        const attempts = ['e1', 'e2', 'e3'].map(async (id) => (await states(gateway, id))['relay']);
        const all = (await Promise.all(attempts)).join();
        expect(all).toMatch(/^(done \d+,?){3}$/);
        expect(all).toMatch(/done [2-9]/);
      });
      expect(handled).toHaveLength(3);
    });

    it(
      `EN-03 with ${engine}, if the connection is cut before a message is acknowledged, the message is delivered again and its event is handled once`,
      async () => {
        if (running.url === undefined) return;
        const [proxy, url] = await TcpProxy.before(running.url);
        ending.use(proxy);
        const adapter = running.adapter(name, { service: 'ledger', url });
        const deliveries: string[] = [];
        const source: MessageSource = {
          verify: true,
          open: async () => adapter.open?.(),
          close: async () => adapter.close?.(),
          consume: (store, call) =>
            adapter.consume(async (message) => {
              const outcome = await store(message);
              if (deliveries.push(message.attributes['id']!) === 1) proxy.cut();
              return outcome;
            }, call),
        };
        const handled: string[] = [];
        const book = ({ id }: { readonly id: string }) => void handled.push(id);
        ending.use(await startOn(await durable.data(), { book }, { source }));
        const relay = running.adapter(name);
        const gateway = ending.use(await startOn(await durable.data(), {}, { relay }));
        const ids = ['e1', 'e2', 'e3'];
        for (const id of ids) expect(await post(gateway, id, {})).toBe(200);
        await eventually(() => expect(new Set(handled)).toEqual(new Set(ids)));
        const [first] = deliveries;
        await eventually(
          () => expect(deliveries.filter((id) => id === first).length).toBeGreaterThan(1),
          REDELIVERY_MS,
        );
        expect(handled).toHaveLength(3);
      },
      2 * REDELIVERY_MS,
    );

    // The last cases kill the server.
    it(`EN-07 on ${engine}, two services handle each event of a gateway once, also events that arrive while the server is down`, async () => {
      const handled = { ledger: [] as string[], mail: [] as string[] };
      for (const service of ['ledger', 'mail'] as const) {
        const handle = ({ id }: { readonly id: string }) => void handled[service].push(id);
        const source = running.adapter(name, { service });
        ending.use(await startOn(await durable.data(), { handle }, { source }));
      }
      const relay = running.adapter(name);
      const gateway = ending.use(await startOn(await durable.data(), {}, { relay }));
      const before = ['e1', 'e2', 'e3'];
      for (const id of before) expect(await post(gateway, id, {})).toBe(200);
      await eventually(() => expect(new Set(handled.ledger)).toEqual(new Set(before)));
      await running.kill();
      const away = ['e4', 'e5', 'e6'];
      for (const id of away) expect(await post(gateway, id, {})).toBe(200);
      await running.restart();
      const ids = new Set([...before, ...away]);
      await eventually(() => {
        expect([new Set(handled.ledger), new Set(handled.mail)]).toEqual([ids, ids]);
      });
      expect([handled.ledger.length, handled.mail.length]).toEqual([6, 6]);
    });

    it(`EN-01 EN-07 ${engine} keeps every message that it accepted before it was killed, and adapters publish again, even if they started during the outage`, async () => {
      const before = await service('ledger');
      await before.end();
      const gateway = await relay();
      const messages = Array.from({ length: 20 }, () => engineMessage());
      for (const message of messages) await gateway.publish(message, { signal });
      await running.kill();
      const late = AbortSignal.timeout(5000);
      await expect(gateway.publish(engineMessage(), { signal: late })).rejects.toThrow();
      const restarted = running.adapter(name);
      ending.defer(async () => restarted.close?.());
      if (restarted.open !== undefined) await expect(restarted.open()).rejects.toThrow();
      if (restarted.status !== undefined) await expect(restarted.status()).rejects.toThrow();
      await running.restart();
      // Each adapter connects by itself, and the module publishes a message again until it is accepted.
      for (const adapter of [gateway, restarted]) {
        const message = engineMessage();
        messages.push(message);
        await eventually(() => adapter.publish(message, { signal: AbortSignal.timeout(5000) }));
      }
      const ledger = await service('ledger');
      const ids = messages.map(({ attributes }) => attributes.id);
      await eventually(() => expect(new Set(ledger.ids)).toEqual(new Set(ids)));
    });
  });
}
