import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { ConsumerConfig, StreamConfig } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import { jetStream } from 'nestjs-payments-jetstream';
import type { JetStreamOptions } from 'nestjs-payments-jetstream';
import { JetStreamServer } from '../support/engines/jetstream-server.ts';
import { logged } from '../support/log/captured-log.ts';
import { eventually } from '../support/time/waiting.ts';
import { engineMessage } from './engine-contract.ts';

const { signal } = new AbortController();
const DAY_MS = 86_400_000;

const describeIf = JetStreamServer.isInstalled() ? describe : describe.skip;
describeIf('Settings of JetStream', () => {
  let server: JetStreamServer;
  let stream: string;
  let ending: AsyncDisposableStack;

  beforeAll(async () => {
    server = await JetStreamServer.create();
  });
  beforeEach(() => {
    stream = `s${randomUUID().slice(0, 8)}`;
    ending = new AsyncDisposableStack();
  });
  afterEach(() => ending.disposeAsync());
  afterAll(() => server?.[Symbol.asyncDispose]());

  function adapter(options: Partial<JetStreamOptions> = {}) {
    return gateway({ service: 'ledger', ...options });
  }

  function gateway(options: Partial<JetStreamOptions> = {}) {
    // On a machine that is busy with something else, a connection takes seconds.
    const own = { servers: server.url, oneReplica: true, connection: { timeout: 60_000 } };
    const created = jetStream({ ...own, stream, ...options });
    ending.defer(async () => created.close?.());
    return created;
  }

  function addStream(config: Partial<StreamConfig> = {}): Promise<unknown> {
    return server.manage(({ streams }) =>
      streams.add({ name: stream, subjects: [`${stream}.>`], ...config }),
    );
  }

  function addConsumer(config: Partial<ConsumerConfig>): Promise<unknown> {
    const own = { durable_name: 'ledger', ack_policy: 'explicit', ...config } as const;
    return server.manage(({ consumers }) => consumers.add(stream, own));
  }

  it('EN-09 setup "create" creates streams and a consumer that another process with setup "check" accepts', async () => {
    await adapter().open();
    await adapter({ setup: 'check' }).open();
    await server.manage(async ({ streams, consumers }) => {
      const { config } = await streams.info(stream);
      expect(config).toMatchObject({ storage: 'file', retention: 'limits', discard: 'new' });
      expect(config.max_age).toBe(nanos(30 * DAY_MS));
      expect((await streams.info(`${stream}_DEAD`)).config.max_age).toBe(0);
      const { config: consumer } = await consumers.info(stream, 'ledger');
      expect(consumer).toMatchObject({ ack_policy: 'explicit', max_deliver: -1 });
    });
  });

  it('EN-09 several processes can create the same streams and consumers at the same time', async () => {
    const all = [adapter(), adapter(), gateway(), adapter({ service: 'mail' })];
    await Promise.all(all.map((one) => one.open()));
  });

  const unsafeStreams: [string, Partial<StreamConfig>, RegExp][] = [
    ['memory storage', { storage: 'memory' }, /storage "memory".*create it again/],
    ['no_ack', { no_ack: true }, /no_ack true.*Use false/],
    [
      'an age of six days',
      { max_age: nanos(6 * DAY_MS) },
      /max_age 518400000000000.*at least 604800000000000 \(7 days\)/,
    ],
    ['1 MB and discard old', { max_bytes: 1_000_000, discard: 'old' }, /discard "old".*max_bytes/],
    ['1,000 messages and discard old', { max_msgs: 1000, discard: 'old' }, /discard "old".*max_ms/],
    ['retention "workqueue"', { retention: 'workqueue' }, /retention "workqueue".*Use "limits"/],
    ['retention "interest"', { retention: 'interest' }, /retention "interest".*Use "limits"/],
    ['a message per subject', { max_msgs_per_subject: 1 }, /max_msgs_per_subject 1.*Use -1/],
    ['other subjects', { subjects: ['elsewhere.>'] }, /subjects \["elsewhere.>"\].*Add/],
  ];
  it.each(unsafeStreams)('EN-09 a stream with %s is unsafe', async (_, config, problem) => {
    await addStream(config);
    const unsafe = { code: 'engine_unsafe', message: expect.stringMatching(problem) };
    await expect(gateway().open()).rejects.toMatchObject(unsafe);
    await expect(adapter({ setup: 'check' }).open()).rejects.toMatchObject(unsafe);
  });

  const safeStreams: [string, Partial<StreamConfig>][] = [
    ['1 MB and discard new', { max_bytes: 1_000_000, discard: 'new' }],
    ['1 GiB, a million messages and discard old', { max_bytes: 2 ** 30, max_msgs: 1_000_000 }],
    ['an age of seven days', { max_age: nanos(7 * DAY_MS) }],
  ];
  it.each(safeStreams)('EN-09 a stream with %s is safe', async (_, config) => {
    await addStream(config);
    await adapter().open();
  });

  const unsafeConsumers: [string, Partial<ConsumerConfig>, RegExp][] = [
    ['max_deliver 5 (nats-server #4998)', { max_deliver: 5 }, /max_deliver 5.*Use -1/],
    ['ack_policy none', { ack_policy: 'none' }, /ack_policy "none"/],
    ['ack_policy all', { ack_policy: 'all' }, /ack_policy "all"/],
    ['headers_only', { headers_only: true }, /headers_only true/],
    ['inactive_threshold', { inactive_threshold: nanos(60_000) }, /inactive_threshold 60000000000/],
    ['max_batch', { max_batch: 10 }, /max_batch 10.*Use 0/],
    ['max_expires', { max_expires: nanos(1000) }, /max_expires 1000000000.*Use 0/],
    ['a deliver_subject', { deliver_subject: 'push.here' }, /deliver_subject "push.here"/],
  ];
  it.each(unsafeConsumers)('EN-09 a consumer with %s is unsafe', async (_, config, problem) => {
    await addStream();
    await addConsumer(config);
    const unsafe = { code: 'engine_unsafe', message: expect.stringMatching(problem) };
    const ledger = adapter();
    await expect(ledger.open()).rejects.toMatchObject(unsafe);
    const never = () => Promise.reject(new Error('not called'));
    await expect(ledger.consume(never, { signal })).rejects.toMatchObject(unsafe);
  });

  it('EN-09 a consumer that filters the subjects is unsafe', async () => {
    await addStream();
    await addConsumer({ filter_subject: `${stream}.default.>` });
    await expect(adapter().open()).rejects.toThrow(/filter_subject .*does not get all events/);
    await addConsumer({ filter_subject: `${stream}.>` });
    await adapter().open();
  });

  it('EN-09 a stream of dead letters with retention "interest" is unsafe', async () => {
    const config: Partial<StreamConfig> = { retention: 'interest', subjects: [`${stream}_dead.*`] };
    await addStream({ ...config, name: `${stream}_DEAD` });
    await expect(adapter().open()).rejects.toThrow(/_DEAD" has retention "interest"/);
  });

  it('EN-09 setup "check" rejects a missing stream, and a missing consumer', async () => {
    const missing = (what: string) => ({
      code: 'engine_unsafe',
      message: expect.stringMatching(what),
    });
    await expect(adapter({ setup: 'check' }).open()).rejects.toMatchObject(
      missing(`The stream "${stream}" does not exist`),
    );
    await adapter({ service: 'mail' }).open();
    await expect(adapter({ setup: 'check' }).open()).rejects.toMatchObject(
      missing('The consumer "ledger" does not exist'),
    );
  });

  it('EN-09 nothing is published to a stream with unsafe settings until these settings are changed', async () => {
    await addStream({ no_ack: true });
    const relay = gateway();
    const unsafe = { code: 'engine_unsafe' };
    await expect(relay.publish(engineMessage(), { signal })).rejects.toMatchObject(unsafe);
    await server.manage(async ({ streams }) => {
      expect((await streams.info(stream)).state.messages).toBe(0);
      await streams.update(stream, { no_ack: false });
    });
    await eventually(() => relay.publish(engineMessage(), { signal }));
  });

  it('EN-09 a stream with one replica is unsafe without the option "oneReplica"', async () => {
    const problem = {
      code: 'engine_unsafe',
      message: expect.stringMatching(
        /num_replicas 1: .*power failure.*sync_interval: always.*oneReplica: true/,
      ),
    };
    for (const setup of ['create', 'check'] as const) {
      await expect(gateway({ setup, oneReplica: false }).open()).rejects.toMatchObject(problem);
    }
    await gateway({ setup: 'check' }).open();
  });

  it('EN-09 setup "warn" logs the problem once and continues', async () => {
    await addStream({ max_age: nanos(DAY_MS) });
    const relay = gateway({ setup: 'warn' });
    await logged(async ({ lines }) => {
      await relay.open();
      await relay.publish(engineMessage(), { signal });
      expect(lines).toEqual([
        expect.stringMatching(/^warn Settings of JetStream lose events.*max_age 86400000000000/),
      ]);
    });
  });
});
