import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { inspect } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { jetstream } from '@nats-io/jetstream';
import { headers, nanos } from '@nats-io/transport-node';
import type { MsgHdrs } from '@nats-io/transport-node';
import type { MessageSource, StoreOutcome, TakenMessage } from 'nestjs-payments';
import { jetStream } from 'nestjs-payments-jetstream';
import { TcpProxy } from '../chaos/tcp-proxy.ts';
import { JetStreamServer } from '../support/engines/jetstream-server.ts';
import { eventually } from '../support/time/waiting.ts';
import { engineMessage } from './engine-contract.ts';

const { signal } = new AbortController();
const ACKNOWLEDGE: StoreOutcome = { action: 'acknowledge' };
const REJECT: StoreOutcome = { action: 'reject', code: 'company_unknown' };

const describeIf = JetStreamServer.isInstalled() ? describe : describe.skip;
describeIf('Delivery with JetStream', () => {
  let server: JetStreamServer;
  let stream: string;
  let ending: AsyncDisposableStack;

  beforeAll(async () => {
    server = await JetStreamServer.create();
  });
  beforeEach(() => {
    stream = `d${randomUUID().slice(0, 8)}`;
    ending = new AsyncDisposableStack();
  });
  afterEach(() => ending.disposeAsync());
  afterAll(() => server?.[Symbol.asyncDispose]());

  async function adapter(servers = server.url) {
    // On a machine that is busy with something else, a connection takes seconds.
    const own = { servers, oneReplica: true, connection: { timeout: 60_000 } };
    const created = jetStream({ ...own, stream, service: 'ledger' });
    ending.defer(() => created.close());
    await created.open();
    return created;
  }

  /** Consumes until the test ends, and again after an error, as the module does. */
  function consume(
    source: MessageSource,
    store: (message: TakenMessage) => StoreOutcome | Promise<StoreOutcome> = () => ACKNOWLEDGE,
  ) {
    const taken: TakenMessage[] = [];
    const errors: string[] = [];
    const stop = new AbortController();
    const run = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        try {
          await source.consume(
            async (message) => {
              taken.push(message);
              return store(message);
            },
            { signal: stop.signal },
          );
        } catch (error) {
          errors.push(String(error));
          await setTimeout(100);
        }
      }
    };
    const ended = run();
    const end = (): Promise<void> => {
      stop.abort();
      return ended;
    };
    ending.defer(end);
    return { taken, errors, end };
  }

  /** Creates the consumer of the service before the adapter does, with a shorter time until a message is delivered again. */
  const createConsumer = () =>
    server.manage(async ({ streams, consumers }) => {
      await streams.add({ name: stream, subjects: [`${stream}.>`] });
      const ack = { ack_policy: 'explicit', ack_wait: nanos(1500) } as const;
      await consumers.add(stream, { durable_name: 'ledger', ...ack });
    });

  const state = () => server.manage(async ({ streams }) => (await streams.info(stream)).state);

  it('EN-01 an event that is published twice is stored once, and its first message is delivered', async () => {
    const ledger = await adapter();
    const message = engineMessage();
    await ledger.publish(message, { signal });
    await ledger.publish(message, { signal });
    expect((await state()).messages).toBe(1);
    const { taken } = consume(ledger);
    await eventually(() => expect(taken).toHaveLength(1));
  });

  it('EN-01 a redriven event is stored again if its first message was deleted minutes before', async () => {
    const ledger = await adapter();
    const message = engineMessage();
    await ledger.publish(message, { signal });
    await server.manage(({ streams }) => streams.deleteMessage(stream, 1));
    // JetStream still knows the id, and answers that the message is a duplicate.
    await ledger.publish(message, { signal });
    expect(await state()).toMatchObject({ messages: 1, last_seq: 2 });
    await server.manage(({ streams }) => streams.purge(stream));
    await ledger.publish(message, { signal });
    const { taken } = consume(ledger);
    await eventually(() => expect(taken).toHaveLength(1));
  });

  it('EN-01 ids that differ in white space only are different messages', async () => {
    const ledger = await adapter();
    for (const id of ['a', 'a ', ' a', 'a%20'])
      await ledger.publish(engineMessage({ id }), { signal });
    const { taken } = consume(ledger);
    await eventually(() => expect(taken).toHaveLength(4));
    const ids = taken.map(({ attributes }) => attributes['id']);
    expect(ids).toEqual(['a', 'a ', ' a', 'a%20']);
  });

  it('EN-02 a type and a company of any characters fit into the subject', async () => {
    const ledger = await adapter();
    const { attributes, ...message } = engineMessage();
    const type = `..a b.*.>\u{1F600}${'x'.repeat(240)}`;
    const company = 'a.b~c';
    await ledger.publish({ ...message, attributes: { ...attributes, type, company } }, { signal });
    const { taken } = consume(ledger);
    await eventually(() => expect(taken).toHaveLength(1));
    expect(taken[0]!.attributes).toMatchObject({ type, company });
    const stored = await server.manage(({ streams }) => streams.getMessage(stream, { seq: 1 }));
    expect(stored!.subject).toMatch(/\.a%2Eb~c\.%\.%\.a%20b\.%2A\.%3E%F0%9F%98%80x+$/);
    expect(stored!.subject.length).toBeLessThan(300);
  });

  it('EN-01 a message that is too large is not accepted, and the next message is accepted', async () => {
    const ledger = await adapter();
    const large = { ...engineMessage(), body: Buffer.alloc(1_100_000) };
    await expect(ledger.publish(large, { signal })).rejects.toThrow(/max_payload/);
    await ledger.publish(engineMessage(), { signal });
  });

  it('EN-01 a full stream does not accept a message', async () => {
    await server.manage(({ streams }) =>
      streams.add({ name: stream, subjects: [`${stream}.>`], max_msgs: 1, discard: 'new' }),
    );
    const ledger = await adapter();
    await ledger.publish(engineMessage(), { signal });
    const failed = ledger.publish(engineMessage(), { signal });
    await expect(failed).rejects.toThrow(
      /did not accept a message. JetStreamApiError: maximum mess/,
    );
  });

  it('EN-01 a deleted stream does not accept a message, and is created again', async () => {
    const ledger = await adapter();
    await server.manage(({ streams }) => streams.delete(stream));
    const message = engineMessage();
    const failed = await ledger.publish(message, { signal }).then(
      () => '',
      (error: unknown) => inspect(error),
    );
    expect(failed).toMatch(/JetStreamNotEnabled/);
    expect(failed).not.toContain('default');
    await ledger.publish(message, { signal });
    expect((await state()).messages).toBe(1);
  });

  it('EN-01 another stream that takes the subject does not acknowledge a message', async () => {
    const gateway = await adapter();
    await server.manage(async ({ streams }) => {
      await streams.delete(stream);
      await streams.add({ name: `${stream}-other`, subjects: [`${stream}.>`] });
    });
    await expect(gateway.publish(engineMessage(), { signal })).rejects.toThrow(/expected stream/);
  });

  it('EN-03 a message is delivered once, even if storing it takes longer than the time limit for its acknowledgement', async () => {
    await createConsumer();
    const ledger = await adapter();
    const gate = Promise.withResolvers<StoreOutcome>();
    const { taken } = consume(ledger, () => gate.promise);
    await ledger.publish(engineMessage(), { signal });
    await eventually(() => expect(taken).toHaveLength(1));
    // Two more messages are published after the time in which the first one must be acknowledged.
    const since = performance.now();
    await eventually(() => expect(performance.now() - since).toBeGreaterThan(4000));
    await ledger.publish(engineMessage(), { signal });
    await eventually(() => expect(taken).toHaveLength(2));
    gate.resolve(ACKNOWLEDGE);
    await eventually(async () => {
      const info = await server.manage(({ consumers }) => consumers.info(stream, 'ledger'));
      expect(info.num_ack_pending).toBe(0);
    });
    expect(taken.map(({ deliveries }) => deliveries)).toEqual([1, 1]);
  });

  it('EN-03 a message of a process that died goes to another process', async () => {
    const [proxy, through] = await TcpProxy.before(server.url);
    await createConsumer();
    const dying = await adapter(through);
    const gate = Promise.withResolvers<StoreOutcome>();
    const hanging = consume(dying, () => gate.promise);
    ending.defer(async () => gate.resolve(ACKNOWLEDGE));
    const gateway = await adapter();
    await gateway.publish(engineMessage(), { signal });
    await eventually(() => expect(hanging.taken).toHaveLength(1));
    await proxy.close();
    const { taken, errors } = consume(gateway);
    await eventually(() => expect({ taken: taken.length, errors }).toMatchObject({ taken: 1 }));
    expect(taken[0]!.deliveries).toBe(2);
  });

  it('EN-05 messages with unreadable headers become dead letters, and block no other message', async () => {
    const allow_rollup_hdrs = true;
    await server.manage(async ({ streams }) => {
      await streams.add({ name: stream, subjects: [`${stream}.>`], allow_rollup_hdrs });
      const dead = { name: `${stream}_DEAD`, subjects: [`${stream}_dead.*`] };
      await streams.add({ ...dead, allow_rollup_hdrs });
    });
    const ledger = await adapter();
    const ugly = headers();
    ugly.set('CE-Company', 'a');
    ugly.append('CE-Company', 'b');
    ugly.set('ce-id', '%ZZ%');
    ugly.set('Nats-Rollup', 'all');
    ugly.set('other', 'kept');
    const raw = (text: string) => ({ encode: () => Buffer.from(text) }) as unknown as MsgHdrs;
    const all = [
      // JetStream deletes the messages before this one, because the header of this message says so.
      ugly,
      raw('NATS/1.0\r\nbad name: x\r\n\r\n'),
      raw('NATS/1.0\r\nce-id: a\nb\r\n\r\n'),
      raw('\xff\xfe\r\n\r\n'),
    ];
    await server.manage(async (_, connection) => {
      for (const one of all) connection.publish(`${stream}.x`, 'garbage', { headers: one });
      connection.publish(`${stream}.x`);
      await connection.flush();
    });
    const { taken } = consume(ledger, ({ attributes }) =>
      attributes['specversion'] === undefined ? REJECT : ACKNOWLEDGE,
    );
    await ledger.publish(engineMessage(), { signal });
    await eventually(() => expect(taken).toHaveLength(6));
    expect(taken[0]!.attributes).toEqual({ company: 'a', id: '%ZZ%' });
    await eventually(async () => {
      const dead = await server.manage(({ streams }) => streams.info(`${stream}_DEAD`));
      expect(dead.state.messages).toBe(5);
    });
    await server.manage(async ({ streams }) => {
      const letter = await streams.getMessage(`${stream}_DEAD`, { seq: 1 });
      expect(Object.fromEntries(letter!.header)).toEqual({
        'ce-company': ['a', 'b'],
        'ce-id': ['%ZZ%'],
        other: ['kept'],
        'payments-code': ['company_unknown'],
        'payments-subject': [`${stream}.x`],
        'Nats-Msg-Id': [expect.stringMatching(/^ledger\/1\/\d+$/)],
        'Nats-Expected-Stream': [`${stream}_DEAD`],
      });
    });
  });

  it('EN-05 a rejected message stays in the stream if it cannot become a dead letter, and becomes a dead letter later', async () => {
    const ledger = await adapter();
    await server.manage(({ streams }) => streams.delete(`${stream}_DEAD`));
    const { taken } = consume(ledger, () => REJECT);
    await ledger.publish(engineMessage(), { signal });
    await eventually(() => expect(taken).toHaveLength(1));
    await server.manage(({ streams }) =>
      streams.add({ name: `${stream}_DEAD`, subjects: [`${stream}_dead.*`] }),
    );
    await eventually(async () => {
      const dead = await server.manage(({ streams }) => streams.info(`${stream}_DEAD`));
      expect(dead.state.messages).toBe(1);
    });
  });

  it('EN-05 a dead letter that is sent again reaches the service, even if it is sent again within minutes', async () => {
    const ledger = await adapter();
    let outcome: StoreOutcome = REJECT;
    const { taken } = consume(ledger, () => outcome);
    const message = engineMessage();
    await ledger.publish(message, { signal });
    await eventually(() => expect(taken).toHaveLength(1));
    await eventually(async () => {
      const { state } = await server.manage(({ streams }) => streams.info(`${stream}_DEAD`));
      expect(state.messages).toBe(1);
    });
    outcome = ACKNOWLEDGE;
    await server.manage(async ({ streams }, connection) => {
      // The example of the README.
      const letter = await streams.getMessage(`${stream}_DEAD`, { seq: 1 });
      const { header } = letter!;
      const again = headers();
      for (const [name, [value]] of header) {
        if (name.startsWith('ce-') || name === 'content-type') again.set(name, value!);
      }
      const subject = decodeURIComponent(header.get('payments-subject'));
      await jetstream(connection).publish(subject, letter!.data, { headers: again });
      await streams.deleteMessage(`${stream}_DEAD`, 1);
    });
    await eventually(() => expect(taken).toHaveLength(2));
    expect(taken[1]!.attributes).toEqual(taken[0]!.attributes);
    expect(Buffer.from(taken[1]!.body).equals(Buffer.from(message.body))).toBe(true);
  });

  it.each(['consumer', 'stream'])('EN-10 consume() rejects if the %s is deleted', async (what) => {
    const ledger = await adapter();
    const { taken, errors } = consume(ledger);
    await ledger.publish(engineMessage(), { signal });
    await eventually(() => expect(taken).toHaveLength(1));
    await server.manage(({ streams, consumers }) =>
      what === 'stream' ? streams.delete(stream) : consumers.delete(stream, 'ledger'),
    );
    await eventually(() => expect(errors.join()).toMatch(/consumer deleted/i));
    const message = engineMessage();
    await eventually(() => ledger.publish(message, { signal }));
    const { id } = message.attributes;
    await eventually(() => expect(taken.map(({ attributes }) => attributes['id'])).toContain(id));
  });

  it('EN-10 consume() without a service rejects', async () => {
    const gateway = jetStream({ servers: server.url, stream, oneReplica: true });
    const never = () => Promise.reject(new Error('not called'));
    await expect(gateway.consume(never, { signal })).rejects.toMatchObject({
      code: 'options_invalid',
      message: expect.stringContaining('needs the option "service"'),
    });
  });

  it('EN-11 an error about a wrong password shows neither the password nor the address', async () => {
    const servers = server.url.replace('s3cret-password', 'wr0ng-password');
    const gateway = jetStream({ servers, stream });
    const error: unknown = await gateway.open().catch((thrown: unknown) => thrown);
    expect(inspect(error)).toMatch(/Authorization Violation/);
    for (const text of [inspect(error), inspect(gateway, { depth: 10 }), JSON.stringify(gateway)]) {
      expect(text).not.toContain('wr0ng-password');
    }
  });

  it.each<[string, object]>([
    ['a relay', {}],
    ['a service', { service: 'ledger' }],
  ])(
    'EN-11 status() of %s rejects if the connection is lost before the answer, and answers after a new connection',
    async (_, options) => {
      const [proxy, servers] = await TcpProxy.before(server.url);
      ending.use(proxy);
      const engine = jetStream({ servers, stream, oneReplica: true, ...options });
      ending.defer(() => engine.close());
      await engine.open();
      proxy.silence(true);
      const reading = expect(engine.status()).rejects.toThrow();
      proxy.cut();
      proxy.silence(false);
      await reading;
      await eventually(() => engine.status());
    },
  );

  it('EN-10 consume() ends if the connection is lost while the application closes', async () => {
    const [proxy, through] = await TcpProxy.before(server.url);
    ending.use(proxy);
    const { taken, end } = consume(await adapter(through));
    const gateway = await adapter();
    await gateway.publish(engineMessage(), { signal });
    await eventually(() => expect(taken).toHaveLength(1));
    proxy.silence(true);
    const ended = end();
    proxy.cut();
    await ended;
  });

  it('EN-07 consume() rejects if the server does not answer, and continues with the next call', async () => {
    const ledger = await adapter();
    const { taken, errors } = consume(ledger);
    const gateway = await adapter();
    server.pause();
    try {
      // On a busy machine, a thread of the server may still answer for a moment.
      await eventually(() =>
        expect(gateway.publish(engineMessage(), { signal })).rejects.toThrow(/timeout/),
      );
      await eventually(() => expect(errors.join()).toMatch(/heartbeats missed|connection to NATS/));
    } finally {
      server.resume();
    }
    const message = engineMessage();
    await eventually(() => gateway.publish(message, { signal }));
    const { id } = message.attributes;
    await eventually(() => expect(taken.map(({ attributes }) => attributes['id'])).toContain(id));
  });
});
