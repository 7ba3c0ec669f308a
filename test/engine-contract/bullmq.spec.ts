import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import type { StoreOutcome, TakenMessage } from 'nestjs-payments';
import { bullMQ } from 'nestjs-payments-bullmq';
import type { BullMQOptions } from 'nestjs-payments-bullmq';
import { BullMQServer } from '../support/engines/bullmq-server.ts';
import { captureWarnings } from '../support/log/captured-log.ts';
import { RunningProcess } from '../support/processes/running-process.ts';
import { eventually } from '../support/time/waiting.ts';
import { describeEngine, engineMessage } from './engine-contract.ts';
import type {
  AdapterOptions,
  DeadLetter,
  EngineAdapter,
  RunningEngine,
} from './engine-contract.ts';

const installed = BullMQServer.isInstalled();
const ACKNOWLEDGE: StoreOutcome = { action: 'acknowledge' };
const { signal } = new AbortController();

class RunningBullMQ implements RunningEngine {
  constructor(readonly server: BullMQServer) {}

  get url(): string {
    return this.server.url;
  }

  adapter(name: string, { url = this.url, ...options }: AdapterOptions = {}): EngineAdapter {
    return bullMQ({ connection: url, queue: name, ...options });
  }

  kill(): Promise<void> {
    return this.server.kill();
  }

  restart(): Promise<void> {
    return this.server.start();
  }

  async deadLetters(name: string, service: string): Promise<readonly DeadLetter[]> {
    await using queue = queueOf(this.server, `${name}.${service}`);
    const jobs = await queue.getFailed();
    return jobs.map(({ failedReason, data }) => ({
      code: failedReason,
      body: Buffer.from(String((data as { data_base64?: unknown }).data_base64), 'base64'),
    }));
  }

  async addForeignMessage(name: string, service: string, body: Uint8Array): Promise<void> {
    await using queue = queueOf(this.server, `${name}.${service}`);
    await queue.add('foreign', Buffer.from(body).toString('utf8'));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.server[Symbol.asyncDispose]();
  }
}

describeEngine({
  name: 'BullMQ',
  installed,
  keepsOrder: true,
  start: async () => new RunningBullMQ(await BullMQServer.start()),
});

const describeIf = installed ? describe : describe.skip;

describeIf('bullMQ', () => {
  let server: BullMQServer;
  let ending: AsyncDisposableStack;
  let queue: string;
  let number = 0;

  beforeAll(async () => {
    server = await BullMQServer.start();
  });
  beforeEach(() => {
    ending = new AsyncDisposableStack();
    queue = `q${(number += 1)}`;
  });
  afterEach(() => ending.disposeAsync());
  afterAll(() => server?.[Symbol.asyncDispose]());

  function engine(options: Partial<BullMQOptions> = {}) {
    const created = bullMQ({ connection: server.url, queue, ...options });
    ending.defer(() => created.close());
    return created;
  }

  function jobs(service = 'ledger'): Queue {
    return ending.use(queueOf(server, `${queue}.${service}`));
  }

  /** Deletes the locks of messages, as if they had expired. */
  async function expireLocks(): Promise<void> {
    const locks = await server.client.keys(`bull:${queue}.ledger:*:lock`);
    if (locks.length > 0) await server.client.del(locks);
  }

  /** Consumes until the test ends. Resolves once the service is registered. */
  async function consume(
    store: (message: TakenMessage) => StoreOutcome | Promise<StoreOutcome>,
    options: Partial<BullMQOptions> = {},
  ): Promise<{ readonly taken: TakenMessage[]; end(): Promise<void> }> {
    const source = engine({ service: 'ledger', ...options });
    await source.open();
    const taken: TakenMessage[] = [];
    const stop = new AbortController();
    const ended = source.consume(
      async (message) => {
        taken.push(message);
        return store(message);
      },
      { signal: stop.signal },
    );
    ended.catch(() => {});
    // It has rejected already if the case ended its server.
    const end = async (): Promise<void> => {
      stop.abort();
      await ended.catch(() => {});
    };
    ending.defer(end);
    return { taken, end };
  }

  describe('options', () => {
    const wrong: [string, object, RegExp][] = [
      ['queue', { queue: 'a:b' }, /"bullMQ\.queue" must be 1 to 64 of A-Z/],
      ['service', { service: '' }, /"bullMQ\.service" must be 1 to 64 of A-Z/],
      ['services', { services: ['a', 1] }, /"bullMQ\.services" must be an array/],
      ['services', { services: 'ledger' }, /"bullMQ\.services" must be an array/],
      [
        'setup',
        { setup: 'never' },
        /"bullMQ\.setup" must be 'create' \(default\), 'check' or 'warn'/,
      ],
      ['maxInProgress', { maxInProgress: 10_001 }, /from 1 to 10000; it is 10001/],
      ['verify', { verify: 'no' }, /"bullMQ\.verify" must be true or false/],
      ['a misspelt option', { servce: 'a' }, /there is no option "bullMQ\.servce"/],
      ['no connection', { connection: undefined }, /"bullMQ\.connection" must be a URL/],
      ['a URL of another kind', { connection: 'http://:hidden@a' }, /"bullMQ\.connection" must be/],
      ['a key prefix', { connection: { keyPrefix: 'a' } }, /without "keyPrefix"/],
      [
        'a cluster',
        { connection: { duplicate() {}, isCluster: true } },
        /must be without a cluster/,
      ],
    ];
    it.each(wrong)('EN-09 bullMQ() rejects a wrong option at once: %s', (_, options, message) => {
      const create = (): unknown => bullMQ({ connection: server.url, ...options });
      expect(create).toThrow(message);
      expect(create).toThrow(expect.objectContaining({ code: 'options_invalid' }));
      expect(create).not.toThrow(/hidden|s3cret/);
    });

    it('EN-04 consume() rejects without the option "service"', async () => {
      const consumed = engine().consume(async () => ACKNOWLEDGE, { signal });
      await expect(consumed).rejects.toMatchObject({ code: 'options_invalid' });
    });

    it('bullMQ() accepts options of ioredis or a client of ioredis, and leaves the client open', async () => {
      const { hostname: host, port, password } = new URL(server.url);
      const options = { host, port: Number(port), password };
      const client = new Redis(options);
      ending.defer(() => client.disconnect());
      for (const connection of [options, client]) {
        const relay = bullMQ({ connection, queue, services: ['ledger'] });
        await relay.publish(engineMessage(), { signal });
        await relay.close();
        await relay.close();
      }
      expect(await client.ping()).toBe('PONG');
      expect(await jobs().getWaitingCount()).toBe(2);
    });
  });

  describe('settings of Redis', () => {
    const unsafe = [
      [{ appendonly: 'no' }, /"appendonly" of Redis is "no".*Set "appendonly yes"/],
      [{ 'maxmemory-policy': 'allkeys-lru' }, /"maxmemory-policy" of Redis is "allkeys-lru"/],
      [{ appendfsync: 'everysec' }, /"appendfsync" of Redis is "everysec".*power failure.*always/],
      [{ 'no-appendfsync-on-rewrite': 'yes' }, /"no-appendfsync-on-rewrite" of Redis is "yes"/],
    ] as const;
    it.each(unsafe)(
      'EN-09 the adapter for BullMQ rejects if Redis has the settings %j; with setup "warn", the adapter logs the problem and works',
      async (given, message) => {
        await using other = await BullMQServer.start(given);
        const lines = captureWarnings(ending);
        const options = { connection: other.url, services: ['ledger'] };
        const refusing = engine(options);
        const refused = { code: 'engine_unsafe', message: expect.stringMatching(message) };
        await expect(refusing.open()).rejects.toMatchObject(refused);
        await expect(refusing.publish(engineMessage(), { signal })).rejects.toMatchObject(refused);
        const checking = engine({ ...options, service: 'ledger', setup: 'check' });
        await expect(checking.consume(async () => ACKNOWLEDGE, { signal })).rejects.toMatchObject(
          refused,
        );
        expect(lines).toEqual([]);
        const warning = engine({ ...options, setup: 'warn' });
        await warning.open();
        await warning.publish(engineMessage(), { signal });
        expect(lines).toEqual([expect.stringMatching(message)]);
      },
    );

    it('EN-09 the adapter for BullMQ refuses a Redis that forbids CONFIG GET, and the error names setup "warn" as the fix', async () => {
      await server.client.call(
        'ACL',
        'SETUSER',
        'managed',
        'on',
        '>hidden',
        '~*',
        '+@all',
        '-config',
      );
      const connection = server.url.replace(/default:[^@]*/, 'managed:hidden');
      const refused = engine({ connection, service: 'ledger' }).open();
      await expect(refused).rejects.toMatchObject({
        code: 'engine_unsafe',
        message: expect.stringMatching(/CONFIG GET.*bullMQ\(\{ setup: 'warn' \}\)/),
      });
      await expect(refused).rejects.not.toThrow(/hidden/);
      const lines = captureWarnings(ending);
      const warning = engine({ connection, service: 'ledger', setup: 'warn' });
      await warning.open();
      expect(lines).toHaveLength(1);
      await warning.publish(engineMessage(), { signal });
      expect(await jobs().getWaitingCount()).toBe(1);
    });

    it('EN-09 the adapter for BullMQ checks the settings of Redis again after a reconnect', async () => {
      await using other = await BullMQServer.start();
      const relay = engine({ connection: other.url, services: ['ledger'] });
      await relay.publish(engineMessage(), { signal });
      await other.client.config('SET', 'appendonly', 'no');
      await other.client.call('CLIENT', 'KILL', 'TYPE', 'normal');
      await eventually(() =>
        expect(relay.publish(engineMessage(), { signal })).rejects.toMatchObject({
          code: 'engine_unsafe',
        }),
      );
    });

    it('EN-09 with setup "check", a service that is not registered is an error', async () => {
      const checking = engine({ service: 'ledger', setup: 'check' });
      await expect(checking.open()).rejects.toMatchObject({
        code: 'engine_unsafe',
        message: expect.stringContaining(`SADD bull:${queue}:services ledger`),
      });
      await engine({ service: 'ledger' }).open();
      await eventually(() => checking.open());
    });
  });

  describe('services', () => {
    it('EN-04 publish() rejects while no service is known, because the event would be lost', async () => {
      const relay = engine();
      await relay.open();
      const published = relay.publish(engineMessage(), { signal });
      await expect(published).rejects.toThrow(/No service takes events/);
    });

    it('EN-04 a service in the option "services" gets the events that are published before it starts for the first time', async () => {
      const relay = engine({ services: ['ledger'] });
      const message = engineMessage();
      await relay.publish(message, { signal });
      const { taken } = await consume(() => ACKNOWLEDGE);
      await eventually(() => expect(taken).toHaveLength(1));
      expect(taken[0]!.attributes['id']).toBe(message.attributes.id);
    });
  });

  describe('jobs', () => {
    it('EN-02 a job is a CloudEvents event in the JSON format, and its id has no colon', async () => {
      const relay = engine({ services: ['ledger'] });
      const message = engineMessage({ id: 'a:b%c' });
      await relay.publish(message, { signal });
      const [job] = await jobs().getWaiting();
      expect(job!.id).toBe('default/a%3Ab%25c');
      expect(job!.name).toBe('transaction.completed');
      const data_base64 = Buffer.from(message.body).toString('base64');
      expect(job!.data).toEqual({ ...message.attributes, data_base64 });
    });

    it('EN-01 a second copy of a waiting event is ignored', async () => {
      const relay = engine({ services: ['ledger', 'mail'] });
      const message = engineMessage();
      await relay.publish(message, { signal });
      await relay.publish(message, { signal });
      expect(await jobs('ledger').getWaitingCount()).toBe(1);
      expect(await jobs('mail').getWaitingCount()).toBe(1);
    });

    it('EN-03 an acknowledged job is removed, and a later copy of the event reaches the module', async () => {
      const { taken } = await consume(() => ACKNOWLEDGE);
      const relay = engine();
      const message = engineMessage();
      for (const count of [1, 2]) {
        await relay.publish(message, { signal });
        await eventually(() => expect(taken).toHaveLength(count));
        await eventually(async () => expect(await countsOf(jobs())).toEqual({}));
      }
    });

    it('EN-05 if a rejected event is published again, its new message is delivered', async () => {
      const relay = engine();
      const { taken } = await consume(({ attributes }) =>
        attributes['signature'] === 'new'
          ? ACKNOWLEDGE
          : { action: 'reject', code: 'signature_mismatch' },
      );
      const message = engineMessage();
      await relay.publish(message, { signal });
      await eventually(async () => expect(await countsOf(jobs())).toEqual({ failed: 1 }));
      const attributes = { ...message.attributes, signature: 'new' };
      await relay.publish({ ...message, attributes }, { signal });
      await eventually(async () => expect(await countsOf(jobs())).toEqual({}));
      expect(taken.map((one) => one.attributes['signature'])).toEqual([
        message.attributes.signature,
        'new',
      ]);
    });

    it('EN-05 a rejected job of another program is kept, whatever its options and data are', async () => {
      const foreign = jobs();
      await foreign.add('a', null, { removeOnFail: true, attempts: 5 });
      await foreign.add('b', { data_base64: 1 }, { removeOnFail: true });
      await foreign.add('c', {}, { jobId: 'broken' });
      await server.client.hset(`bull:${queue}.ledger:broken`, 'data', '{not JSON');
      const { taken } = await consume(() => ({ action: 'reject', code: 'company_unknown' }));
      await eventually(async () => expect(await countsOf(foreign)).toEqual({ failed: 3 }));
      const bodies = taken.map(({ body }) => Buffer.from(body).toString());
      expect(bodies.toSorted()).toEqual(['null', '{"data_base64":1}', '{not JSON'].toSorted());
      const failed = await foreign.getFailed();
      expect(new Set(failed.map(({ failedReason }) => failedReason))).toEqual(
        new Set(['company_unknown']),
      );
    });

    it('EN-03 if the result of a message cannot be saved, its job is not moved to the failed set', async () => {
      const lines = captureWarnings(ending);
      const { taken } = await consume(async () => {
        if (taken.length > 1) return ACKNOWLEDGE;
        // The lock expires while the event is being stored.
        await expireLocks();
        return ACKNOWLEDGE;
      });
      const message = engineMessage();
      await engine().publish(message, { signal });
      await eventually(async () => expect(await countsOf(jobs())).toEqual({}));
      expect(taken).toHaveLength(2);
      expect(taken[1]!.deliveries).toBe(2);
      expect(lines).toEqual([
        expect.stringMatching(/could not be saved: Missing lock for a job\.$/),
      ]);
      expect(lines.join()).not.toContain(message.attributes.id);
    });

    it('EN-10 the lock of a message is renewed while the message is being stored, and no other process takes the message', async () => {
      const stored = Promise.withResolvers<StoreOutcome>();
      const first = await consume(() => stored.promise);
      await engine().publish(engineMessage(), { signal });
      await eventually(() => expect(first.taken).toHaveLength(1));
      const second = await consume(() => ACKNOWLEDGE);
      const [lock] = await server.client.keys(`bull:${queue}.ledger:*:lock`);
      const lifetime = await server.client.pttl(lock!);
      // The first renewal comes after half the lifetime of a lock.
      await eventually(async () =>
        expect(await server.client.pttl(lock!)).toBeLessThan(lifetime - 5000),
      );
      await eventually(async () =>
        expect(await server.client.pttl(lock!)).toBeGreaterThan(lifetime - 1000),
      );
      stored.resolve(ACKNOWLEDGE);
      await eventually(async () => expect(await countsOf(jobs())).toEqual({}));
      expect([first.taken.length, second.taken.length]).toEqual([1, 0]);
    });

    it('EN-10 an acknowledgement changes nothing after another process has taken and acknowledged the message', async () => {
      const late = Promise.withResolvers<StoreOutcome>();
      const lines = captureWarnings(ending);
      const first = await consume(() => late.promise, { maxInProgress: 1 });
      ending.defer(() => late.resolve(ACKNOWLEDGE));
      await engine().publish(engineMessage(), { signal });
      await eventually(() => expect(first.taken).toHaveLength(1));
      const second = await consume(() => ACKNOWLEDGE);
      // The lock of the first process expires, as if the event loop of this process had been blocked.
      await eventually(async () => {
        await expireLocks();
        expect(second.taken).toHaveLength(1);
      });
      await eventually(async () => expect(await countsOf(jobs())).toEqual({}));
      late.resolve(ACKNOWLEDGE);
      await first.end();
      expect(await countsOf(jobs())).toEqual({});
      expect(lines.at(-1)).toMatch(/Missing key for a job|could not renew lock for a job/);
    });

    it('EN-03 a message is delivered to a third process after two processes that had taken it were killed', async () => {
      const message = engineMessage();
      await engine({ services: ['ledger'] }).publish(message, { signal });
      // By default, BullMQ moves a job to the failed set when its second process dies.
      const workers = [1, 2].map(() => ending.use(hangingWorker(server.url, queue)));
      for (let killed = 0; killed < 2; killed += 1) {
        const taken = await Promise.race(
          workers.map(async (worker) => {
            await worker.prints(/^taken$/);
            return worker;
          }),
        );
        await taken.kill();
        workers.splice(workers.indexOf(taken), 1);
        await expireLocks();
      }
      const { taken } = await consume(() => ACKNOWLEDGE);
      await eventually(async () => expect(await countsOf(jobs())).toEqual({}));
      expect(taken.map(({ attributes }) => attributes['id'])).toEqual([message.attributes.id]);
      expect(taken[0]!.deliveries).toBe(3);
    });
  });

  describe('connection', () => {
    it('EN-10 when the application closes, consume() ends, even if Redis does not answer', async () => {
      await using other = await BullMQServer.start();
      const stored = Promise.withResolvers<StoreOutcome>();
      const ledger = await consume(() => stored.promise, { connection: other.url });
      await engine({ connection: other.url }).publish(engineMessage(), { signal });
      await eventually(() => expect(ledger.taken).toHaveLength(1));
      await other.kill();
      const ended = ledger.end();
      stored.resolve(ACKNOWLEDGE);
      await ended;
    });

    it('EN-10 consume() rejects if the connection to Redis is lost', async () => {
      await using other = await BullMQServer.start();
      const source = engine({ connection: other.url, service: 'ledger' });
      const consumed = source.consume(async () => ACKNOWLEDGE, { signal });
      const rejected = expect(consumed).rejects.toThrow(/was lost|is closed/);
      await eventually(async () => expect(await other.client.client('LIST')).toContain('bull:'));
      await other.kill();
      await rejected;
    });

    it('EN-07 after a failover, the adapter for BullMQ leaves the server that has become a replica', async () => {
      await using other = await BullMQServer.start();
      const relay = engine({ connection: other.url, services: ['ledger'] });
      await relay.publish(engineMessage(), { signal });
      await other.client.call('REPLICAOF', '127.0.0.1', '1');
      await expect(relay.publish(engineMessage(), { signal })).rejects.toThrow(/READONLY/);
      await other.client.call('REPLICAOF', 'NO', 'ONE');
      // Only a new connection checks the settings.
      await other.client.config('SET', 'appendonly', 'no');
      await expect(relay.publish(engineMessage(), { signal })).rejects.toMatchObject({
        code: 'engine_unsafe',
      });
    });

    it('EN-10 publish() and consume() reject while the memory of Redis is full, and no message is lost', async () => {
      await using other = await BullMQServer.start();
      const relay = engine({ connection: other.url, services: ['ledger'] });
      const message = engineMessage();
      await relay.publish(message, { signal });
      const source = engine({ connection: other.url, service: 'ledger' });
      await source.open();
      await other.client.config('SET', 'maxmemory', '1');
      await expect(relay.publish(engineMessage(), { signal })).rejects.toThrow(/OOM/);
      await expect(source.consume(async () => ACKNOWLEDGE, { signal })).rejects.toThrow(/OOM/);
      await other.client.config('SET', 'maxmemory', '0');
      const { taken } = await consume(() => ACKNOWLEDGE, { connection: other.url });
      await eventually(() => expect(taken).toHaveLength(1));
      expect(taken[0]!.attributes['id']).toBe(message.attributes.id);
    });

    it('EN-11 no error or log line contains a password, a body or an attribute', async () => {
      await using other = await BullMQServer.start();
      const lines = captureWarnings(ending);
      const wrong = engine({ connection: other.url.replace('s3cret', 'wr0ng') });
      const error: unknown = await wrong.open().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(Error);
      const relay = engine({ connection: other.url, services: ['ledger'] });
      const message = engineMessage();
      await other.client.set(`bull:${queue}.ledger:wait`, 'not a list');
      const refused: unknown = await relay
        .publish(message, { signal })
        .catch((thrown: unknown) => thrown);
      expect(refused).toBeInstanceOf(Error);
      const shown = inspect([error, refused, lines, wrong], { depth: 10, showHidden: true });
      const body = Buffer.from(message.body).toString('base64');
      for (const hidden of [
        's3cret',
        'wr0ng',
        message.attributes.id,
        message.attributes.signature,
        body,
      ])
        expect(shown).not.toContain(hidden);
    });
  });
});

function queueOf(server: BullMQServer, name: string): Queue & AsyncDisposable {
  const queue = new Queue(name, { connection: server.client });
  return Object.assign(queue, { [Symbol.asyncDispose]: () => queue.close() });
}

/** The numbers of jobs in all states that have jobs. */
async function countsOf(queue: Queue): Promise<Record<string, number>> {
  const counts = Object.entries(await queue.getJobCounts());
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

/** A process that takes messages and never stores one. */
function hangingWorker(url: string, queue: string): RunningProcess {
  const program = `
    import { bullMQ } from 'nestjs-payments-bullmq';
    const source = bullMQ({ connection: ${JSON.stringify(url)}, queue: '${queue}', service: 'ledger' });
    const { signal } = new AbortController();
    await source.consume(() => (console.log('taken'), new Promise(() => {})), { signal });
  `;
  return new RunningProcess(process.execPath, ['--input-type=module', '-e', program]);
}
