import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { EngineMessage, StoreOutcome, TakenMessage } from 'nestjs-payments';
import { kafka } from 'nestjs-payments-kafka';
import type { KafkaConnection, KafkaOptions } from 'nestjs-payments-kafka';
import { CREATE_TOPICS, DESCRIBE_CONFIGS, KafkaServer } from '../support/engines/kafka-server.ts';
import { captureWarnings } from '../support/log/captured-log.ts';
import { RunningProcess } from '../support/processes/running-process.ts';
import { eventually } from '../support/time/waiting.ts';
import { describeEngine, engineMessage } from './engine-contract.ts';
import type { DeadLetter, RunningEngine } from './engine-contract.ts';

const installed = KafkaServer.isInstalled();
const ACKNOWLEDGE: StoreOutcome = { action: 'acknowledge' };
const { signal } = new AbortController();
/** A consumer learns of a rebalance from the answer to a heartbeat, and the time for a rebalance is short in these tests. */
const connection = { heartbeatInterval: 500 } as KafkaConnection;

describeEngine({
  name: 'Kafka',
  installed,
  keepsOrder: true,
  async start(): Promise<RunningEngine> {
    const server = await KafkaServer.start();
    return {
      kill: () => server.kill(),
      restart: () => server.restart(),
      adapter: (name, options = {}) =>
        kafka({ brokers: server.brokers, topic: name, connection, ...options }),
      deadLetters: (name, service) => readDeadLetters(server, `${name}.${service}.dead`),
      addForeignMessage: async (name, _, body) => {
        await server.kcat(['-P', '-t', name], body);
      },
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
});

async function readDeadLetters(server: KafkaServer, topic: string): Promise<DeadLetter[]> {
  const lines = await server.kcat(['-C', '-t', topic, '-o', 'beginning', '-e', '-q', '-J']);
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const { headers = [], payload } = JSON.parse(line) as { headers?: string[]; payload: string };
      return { code: headers[headers.indexOf('payments-code') + 1], body: Buffer.from(payload) };
    });
}

const describeIf = installed ? describe : describe.skip;

describeIf('kafka', () => {
  let server: KafkaServer;
  let ending: AsyncDisposableStack;
  let topic: string;
  let number = 0;

  beforeAll(async () => {
    server = await KafkaServer.start();
  });
  beforeEach(() => {
    ending = new AsyncDisposableStack();
    topic = `t${(number += 1)}`;
  });
  afterEach(() => ending.disposeAsync());
  afterAll(() => server?.[Symbol.asyncDispose]());

  function engine(options: Partial<KafkaOptions> = {}) {
    const created = kafka({ brokers: server.brokers, topic, connection, ...options });
    ending.defer(() => created.close());
    return created;
  }

  /** Consumes until the test ends, and again after an error, as the module does. */
  function consume(
    store: (message: TakenMessage) => StoreOutcome | Promise<StoreOutcome>,
    options: Partial<KafkaOptions> = {},
  ): string[] {
    const source = engine({ service: 'ledger', ...options });
    const taken: string[] = [];
    const stop = new AbortController();
    const take = async (message: TakenMessage): Promise<StoreOutcome> => {
      taken.push(message.attributes['id']!);
      return store(message);
    };
    const run = async (): Promise<void> => {
      while (!stop.signal.aborted) await source.consume(take, stop).catch(() => {});
    };
    const ended = run();
    ending.defer(() => {
      stop.abort();
      return ended;
    });
    return taken;
  }

  async function publish(count: number, transaction?: string): Promise<EngineMessage[]> {
    const relay = engine();
    const fields = transaction === undefined ? {} : { transaction };
    const messages = Array.from({ length: count }, () => engineMessage(fields));
    for (const message of messages) await relay.publish(message, { signal });
    return messages;
  }

  const idsOf = (messages: readonly EngineMessage[]) =>
    messages.map(({ attributes }) => attributes.id);

  describe('options', () => {
    const wrong: [string, object, RegExp][] = [
      ['brokers', { brokers: [] }, /"kafka\.brokers" must be an address/],
      ['brokers', { brokers: 'kafka://a:9092' }, /"kafka\.brokers" must be an address/],
      ['topic', { topic: 'a b' }, /"kafka\.topic" must be 1 to 150/],
      ['partitions', { partitions: 0 }, /"kafka\.partitions" must be .*from 1 to 1000/],
      ['service', { service: 'a.b' }, /"kafka\.service" must be 1 to 64/],
      ['connection', { connection: 'sasl' }, /"kafka\.connection" must be an object/],
      ['a misspelt option', { servce: 'a' }, /there is no option "kafka\.servce"/],
    ];
    it.each(wrong)('EN-09 kafka() rejects a wrong option at once: %s', (_, options, message) => {
      const create = (): unknown => kafka({ brokers: 'localhost:9092', topic: 'a', ...options });
      expect(create).toThrow(message);
      expect(create).toThrow(expect.objectContaining({ code: 'options_invalid' }));
    });

    it('EN-04 consume() of Kafka rejects without the option "service"', async () => {
      const consumed = engine().consume(async () => ACKNOWLEDGE, { signal });
      await expect(consumed).rejects.toMatchObject({ code: 'options_invalid' });
    });
  });

  describe('settings of topics', () => {
    const unsafe: [object, RegExp][] = [
      [{ 'min.insync.replicas': '1' }, /has min\.insync\.replicas 1: .* Use 2\./],
      [{ 'cleanup.policy': 'compact' }, /has cleanup\.policy compact: .* Use "delete"\./],
      [{ 'retention.ms': '3600000' }, /has retention\.ms 3600000: .* at least 604800000/],
      [{ 'retention.bytes': '1048576' }, /has retention\.bytes 1048576/],
      [{ 'unclean.leader.election.enable': 'true' }, /has unclean\.leader\.election\.enable true/],
    ];
    it.each(unsafe)(
      'EN-09 the adapter for Kafka refuses a topic with %j, and only logs this problem with setup "warn"',
      async (settings, message) => {
        server.topics.set(topic, settings as Record<string, string>);
        const refused = { code: 'engine_unsafe', message: expect.stringMatching(message) };
        await expect(engine().open()).rejects.toMatchObject(refused);
        await expect(engine().publish(engineMessage(), { signal })).rejects.toMatchObject(refused);
        const source = engine({ service: 'ledger', setup: 'check' });
        const consumed = source.consume(async () => ACKNOWLEDGE, { signal });
        await expect(consumed).rejects.toMatchObject(refused);
        const lines = captureWarnings(ending);
        const warning = engine({ setup: 'warn' });
        await warning.publish(engineMessage(), { signal });
        expect(lines).toEqual([expect.stringMatching(message)]);
      },
    );

    it('EN-09 the adapter for Kafka creates the topics with settings that lose no events', async () => {
      await engine({ service: 'ledger' }).open();
      const settings = { 'min.insync.replicas': '2', 'cleanup.policy': 'delete' };
      expect(server.topics.get(topic)).toEqual({ ...settings, 'retention.ms': '2592000000' });
      expect(server.topics.get(`${topic}.ledger.dead`)).toEqual({
        ...settings,
        'retention.ms': '-1',
      });
    });

    it('EN-09 with setup "check", a topic of Kafka that does not exist is an error', async () => {
      await expect(engine({ setup: 'check' }).open()).rejects.toMatchObject({
        code: 'engine_unsafe',
        message: expect.stringContaining(`The topic "${topic}" does not exist.`),
      });
    });

    it('EN-09 if Kafka has too few brokers or forbids to read settings, the error names setup "warn" as the fix', async () => {
      ending.defer(() => server.errors.clear());
      for (const [kind, error] of [
        [CREATE_TOPICS, 38],
        [DESCRIBE_CONFIGS, 29],
      ] as const) {
        server.errors.set(kind, error);
        await expect(engine().open()).rejects.toMatchObject({
          code: 'engine_unsafe',
          message: expect.stringContaining("kafka({ setup: 'warn' })"),
        });
        server.errors.clear();
      }
    });
  });

  it('EN-01 if the connection to Kafka is cut before the answer, the message is published again', async () => {
    const relay = engine();
    const message = engineMessage();
    let cuts = 0;
    server.cutAfter = (request) => request.includes(message.attributes.id) && (cuts += 1) === 1;
    await eventually(() => relay.publish(message, { signal }));
    const taken = consume(() => ACKNOWLEDGE);
    const { id } = message.attributes;
    await eventually(() => expect(taken).toEqual([id, id]));
  });

  it('EN-02 a message of Kafka is a CloudEvents event in binary mode, and its key is company and transaction', async () => {
    const [message] = await publish(1);
    const line = await server.kcat(['-C', '-t', topic, '-o', 'beginning', '-e', '-q', '-J']);
    const { key, headers, payload } = JSON.parse(line) as Record<string, unknown>;
    expect(key).toBe(message!.key);
    expect(payload).toBe(Buffer.from(message!.body).toString());
    const { datacontenttype, ...others } = message!.attributes;
    const attributes = Object.entries(others).flatMap(([name, value]) => [`ce_${name}`, value]);
    expect(headers).toEqual(['content-type', datacontenttype, ...attributes]);
  });

  it('EN-06 Kafka keeps the order of a transaction with any maxInProgress, and other transactions do not wait', async () => {
    const gate = Promise.withResolvers<StoreOutcome>();
    const one = await publish(5, 'one');
    const [first, ...later] = idsOf(one);
    const taken = consume(({ attributes }) =>
      attributes['id'] === first ? gate.promise : ACKNOWLEDGE,
    );
    const others = idsOf(await publish(30));
    await eventually(() => expect(new Set(taken)).toEqual(new Set([first, ...others])));
    gate.resolve(ACKNOWLEDGE);
    await eventually(() => expect(taken.slice(31)).toEqual(later));
  });

  it('EN-03 Kafka commits no offset before the message is stored, also if later messages are stored', async () => {
    const gate = Promise.withResolvers<StoreOutcome>();
    const messages = await publish(20);
    const [first] = idsOf(messages);
    consume(({ attributes }) => (attributes['id'] === first ? gate.promise : ACKNOWLEDGE));
    const monitor = engine({ service: 'ledger' });
    const lag = async () => (await monitor.status()).lag!;
    await eventually(async () => expect(await lag()).toBeLessThan(20));
    await eventually(async () => {
      const before = await lag();
      expect(before).toBeGreaterThan(0);
      expect(await lag()).toBe(before);
    });
    gate.resolve(ACKNOWLEDGE);
    await eventually(async () => expect(await lag()).toBe(0));
  });

  it('EN-03 if a process that takes messages from Kafka is killed while it stores a message, the message is not lost', async () => {
    const [message] = await publish(1);
    const program = `
      import { kafka } from 'nestjs-payments-kafka';
      const source = kafka({ brokers: ${JSON.stringify(server.brokers)}, topic: '${topic}', service: 'ledger' });
      const { signal } = new AbortController();
      await source.consume(() => (console.log('taken'), new Promise(() => {})), { signal });
    `;
    await using worker = new RunningProcess(process.execPath, [
      '--input-type=module',
      '-e',
      program,
    ]);
    await worker.prints(/taken/);
    await worker.kill();
    const taken = consume(() => ACKNOWLEDGE);
    await eventually(() => expect(taken).toEqual(idsOf([message!])));
  });

  it('EN-04 if a second process begins to take messages from Kafka while the first one stores messages, no message is lost', async () => {
    const gate = Promise.withResolvers<StoreOutcome>();
    const messages = await publish(20);
    const first = consume(() => gate.promise);
    await eventually(() => expect(first).toHaveLength(20));
    const second = consume(() => ACKNOWLEDGE);
    await eventually(() => expect(second.length).toBeGreaterThan(0));
    gate.resolve(ACKNOWLEDGE);
    const later = await publish(20);
    const ids = new Set(idsOf([...messages, ...later]));
    await eventually(() => expect(new Set([...first, ...second])).toEqual(ids));
    const monitor = engine({ service: 'ledger' });
    await eventually(async () =>
      expect(await monitor.status()).toEqual({ lag: 0, deadLetters: 0 }),
    );
  });

  it('EN-07 while Kafka does not answer, publish() ends with its signal, and publishes nothing later', async () => {
    const relay = engine({ service: 'ledger' });
    await relay.open();
    ending.defer(() => server.resume());
    server.pause();
    const late = AbortSignal.timeout(500);
    await expect(relay.publish(engineMessage(), { signal: late })).rejects.toThrow(/^Kafka: /);
    server.resume();
    const message = engineMessage();
    await eventually(() => relay.publish(message, { signal }));
    expect(await relay.status()).toEqual({ lag: 1, deadLetters: 0 });
  });

  it('EN-11 no error or log line of the adapter for Kafka contains a body or an attribute', async () => {
    const lines = captureWarnings(ending);
    const relay = engine();
    await relay.open();
    const message = engineMessage();
    await server.kill();
    const refused: unknown = await relay
      .publish(message, { signal })
      .catch((error: unknown) => error);
    await server.restart();
    expect(refused).toBeInstanceOf(Error);
    const shown = inspect([refused, lines, relay], { depth: 10, showHidden: true });
    const body = Buffer.from(message.body).toString();
    for (const hidden of [message.attributes.id, message.attributes.signature, body])
      expect(shown).not.toContain(hidden);
  });
});
