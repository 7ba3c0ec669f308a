import { randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { afterAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { StoreOutcome, TakenMessage } from 'nestjs-payments';
import { Connection } from 'rabbitmq-client';
import { rabbitMQ } from 'nestjs-payments-rabbitmq';
import type { RabbitMQOptions } from 'nestjs-payments-rabbitmq';
import { TcpProxy } from '../chaos/tcp-proxy.ts';
import { RabbitMQServer } from '../support/engines/rabbitmq-server.ts';
import { errorOf } from '../support/errors/thrown-error.ts';
import { logged } from '../support/log/captured-log.ts';
import { eventually } from '../support/time/waiting.ts';
import { describeEngine, engineMessage } from './engine-contract.ts';
import type { AdapterOptions, DeadLetter, RunningEngine } from './engine-contract.ts';

// The server alone takes 10 s to start on an idle machine.
jest.setTimeout(300_000);

/** Long enough for a machine that is busy with something else. */
const connection = { connectionTimeout: 30_000 };
const installed = RabbitMQServer.isInstalled();
const { signal } = new AbortController();
let starting: Promise<RabbitMQServer> | undefined;
/** Names of exchanges with the queues of the service `ledger`. After their creation, the adapter waits for two seconds. */
const prepared = Array.from({ length: 48 }, newName);

/** The one server of this file, with the {@link prepared} exchanges and queues. */
function sharedServer(): Promise<RabbitMQServer> {
  return (starting ??= startPrepared());
}

async function startPrepared(): Promise<RabbitMQServer> {
  const server = await RabbitMQServer.start();
  const creators = prepared.map((exchange) =>
    rabbitMQ({ url: server.url, exchange, connection, services: ['ledger'] }),
  );
  await Promise.all(creators.map((creator) => creator.open()));
  await Promise.all(creators.map((creator) => creator.close()));
  return server;
}

function newName(): string {
  return `t${randomUUID().slice(0, 8)}`;
}

afterAll(async () => (await starting)?.[Symbol.asyncDispose]());

/** Calls `work` with a connection of the client itself. */
async function withClient<T>(
  url: string,
  work: (client: Connection) => Promise<T>,
  frameMax = 8192,
): Promise<T> {
  const client = new Connection({ url, frameMax, connectionTimeout: 30_000 });
  client.on('error', () => {});
  try {
    return await work(client);
  } finally {
    client.unsafeDestroy();
  }
}

/** The dead letters of a service, which stay in their queue. */
function deadLetters(url: string, name: string, service: string): Promise<DeadLetter[]> {
  return withClient(url, async (client) => {
    const letters: DeadLetter[] = [];
    for (;;) {
      const letter = await client.basicGet({ queue: `${name}.${service}.dead` });
      if (letter === undefined) return letters;
      letters.push({ code: letter.headers?.['payments-code'], body: letter.body as Buffer });
    }
  });
}

describeEngine({
  name: 'RabbitMQ',
  installed,
  keepsOrder: true,
  start: async (): Promise<RunningEngine> => {
    const server = await sharedServer();
    return {
      prepared,
      kill: () => server.kill(),
      restart: () => server.restart(),
      url: server.url,
      adapter: (name: string, options: AdapterOptions = {}) =>
        rabbitMQ({ url: server.url, exchange: name, connection, ...options }),
      deadLetters: (name, service) => deadLetters(server.url, name, service),
      addForeignMessage: (name, service, body) =>
        withClient(server.url, async (client) => {
          const publisher = client.createPublisher({ confirm: true });
          await publisher.send(`${name}.${service}`, body);
        }),
      // The server also serves the cases below.
      [Symbol.asyncDispose]: async () => {},
    };
  },
});

describe('the options of rabbitMQ()', () => {
  const url = 'amqp://shop:s3cret-password@127.0.0.1:1';
  const valid: RabbitMQOptions = { url, exchange: 'payments' };

  it.each<[string, object]>([
    ['url', { url: undefined }],
    ['url', { url: 'http://shop:s3cret-password@host' }],
    ['url', { url: 'amqp://shop:s3cret-password%zz@host' }],
    ['url', { url: 'amqp://shop:s3cret-password@ho st' }],
    ['url', { url: 'amqp://host' }],
    ['exchange', { exchange: undefined }],
    ['exchange', { exchange: 'amq.topic' }],
    ['service', { service: 'led.ger' }],
    ['services', { services: 'ledger' }],
    ['services', { services: ['ledger', ''] }],
    ['setup', { setup: 'creates' }],
    ['maxInProgress', { maxInProgress: 0 }],
    ['maxInProgress', { maxInProgress: 10_001 }],
    ['verify', { verify: 'no' }],
    ['prefetch', { prefetch: 5 }],
    ['connection', { connection: 5 }],
  ])('a wrong option is rejected at once, without a secret: %s in %j', (named, wrong) => {
    const error = errorOf(() => rabbitMQ({ ...valid, ...wrong }));
    expect(error).toMatchObject({ code: 'options_invalid' });
    expect(error!.message).toContain(`"rabbitMQ.${named}"`);
    expect(inspect(error, { depth: 10 })).not.toContain('s3cret');
  });

  it('consume() rejects without the option "service" of rabbitMQ()', async () => {
    const adapter = rabbitMQ(valid);
    const consuming = adapter.consume(async () => ({ action: 'acknowledge' }), { signal });
    await expect(consuming).rejects.toMatchObject({ code: 'options_invalid' });
  });

  it('the adapter that rabbitMQ() returns has the option "verify" as a field', () => {
    expect(rabbitMQ(valid).verify).toBe(true);
    expect(rabbitMQ({ ...valid, verify: false }).verify).toBe(false);
  });

  it('EN-07 a server that refuses connections makes each call reject at once', async () => {
    const adapter = rabbitMQ({ ...valid, service: 'ledger' });
    const store = async (): Promise<StoreOutcome> => ({ action: 'acknowledge' });
    await expect(adapter.open()).rejects.toThrow('ECONNREFUSED');
    await expect(adapter.publish(engineMessage(), { signal })).rejects.toThrow('ECONNREFUSED');
    await expect(adapter.consume(store, { signal })).rejects.toThrow('ECONNREFUSED');
    await adapter.close();
    await expect(adapter.publish(engineMessage(), { signal })).rejects.toThrow('closed');
  });
});

const describeIf = installed ? describe : describe.skip;
describeIf('RabbitMQ itself', () => {
  let url: string;
  let name: string;

  beforeEach(async () => {
    ({ url } = await sharedServer());
    name = prepared.pop() ?? newName();
  });

  /** An adapter for the exchange of the case, open and closed again at the end of the case. */
  async function using<T>(
    options: Partial<RabbitMQOptions>,
    work: (adapter: ReturnType<typeof rabbitMQ>) => Promise<T>,
  ): Promise<T> {
    const adapter = rabbitMQ({ url, exchange: name, connection, ...options });
    try {
      return await work(adapter);
    } finally {
      await adapter.close();
    }
  }

  /** Consumes until `until` holds. Resolves or rejects as `consume` does. */
  async function consume(
    adapter: ReturnType<typeof rabbitMQ>,
    store: (message: TakenMessage) => StoreOutcome,
    until: () => unknown,
  ): Promise<void> {
    const stop = new AbortController();
    const consuming = adapter.consume(async (message) => store(message), stop);
    consuming.catch(() => {});
    try {
      await eventually(until);
    } finally {
      stop.abort();
    }
    await consuming;
  }

  const quorum = { 'x-queue-type': 'quorum' as const, 'x-delivery-limit': 1_000_000_000 };
  const durable = { durable: true, arguments: quorum };

  it.each<[string, Parameters<Connection['queueDeclare']>[0] & object, string]>([
    ['a classic queue', { durable: true }, 'x-queue-type'],
    ['a queue that is not durable', { durable: false }, 'durable'],
    ['a queue that deletes itself', { durable: true, autoDelete: true }, 'auto_delete'],
    [
      'a maximum length',
      { ...durable, arguments: { ...quorum, 'x-max-length': 5 } },
      'x-max-length',
    ],
    [
      'a message TTL',
      { ...durable, arguments: { ...quorum, 'x-message-ttl': 5000 } },
      'x-message-ttl',
    ],
    ['an expiry', { ...durable, arguments: { ...quorum, 'x-expires': 500_000 } }, 'x-expires'],
    [
      'a delivery limit',
      { ...durable, arguments: { ...quorum, 'x-delivery-limit': 5 } },
      'x-delivery-limit',
    ],
  ])('EN-09 %s is refused, for messages and for dead letters', async (_, settings, setting) => {
    name = newName();
    for (const [service, queue] of [
      ['ledger', `${name}.ledger`],
      ['mail', `${name}.mail.dead`],
    ] as const) {
      await withClient(url, (client) => client.queueDeclare({ queue, ...settings }));
      for (const setup of ['create', 'check'] as const) {
        await using({ service, setup }, async (adapter) => {
          const opening = adapter.open();
          await expect(opening).rejects.toMatchObject({ code: 'engine_unsafe' });
          await expect(opening).rejects.toThrow(`rejected the declaration of the queue "${queue}"`);
          await expect(opening).rejects.toThrow(`inequivalent arg '${setting}'`);
          const publishing = adapter.publish(engineMessage(), { signal });
          await expect(publishing).rejects.toMatchObject({ code: 'engine_unsafe' });
        });
      }
    }
  });

  it('EN-09 an exclusive queue is refused', async () => {
    name = newName();
    await withClient(url, async (client) => {
      await client.queueDeclare({ queue: `${name}.ledger`, exclusive: true });
      await using({ service: 'ledger' }, async (adapter) => {
        await expect(adapter.open()).rejects.toMatchObject({ code: 'engine_unsafe' });
        await expect(adapter.open()).rejects.toThrow('exclusive');
      });
    });
  });

  it.each<[string, object, string]>([
    ['another type', { type: 'fanout', durable: true }, 'type'],
    ['no durability', { type: 'topic', durable: false }, 'durable'],
    [
      'an alternate exchange',
      { type: 'topic', durable: true, arguments: { 'alternate-exchange': 'amq.fanout' } },
      'alternate-exchange',
    ],
    ['automatic deletion', { type: 'topic', durable: true, autoDelete: true }, 'auto_delete'],
  ])('EN-09 an exchange with %s is refused', async (_, settings, setting) => {
    name = newName();
    await withClient(url, (client) => client.exchangeDeclare({ exchange: name, ...settings }));
    await using({}, async (adapter) => {
      await expect(adapter.open()).rejects.toMatchObject({ code: 'engine_unsafe' });
      await expect(adapter.open()).rejects.toThrow(`inequivalent arg '${setting}'`);
    });
  });

  it('EN-09 setup "check" refuses a server with a missing exchange or queue, and accepts what setup "create" has created', async () => {
    name = newName();
    const service = 'ledger';
    await using({ service, setup: 'check' }, async (adapter) => {
      await expect(adapter.open()).rejects.toMatchObject({ code: 'engine_unsafe' });
    });
    await using({ service }, (adapter) => adapter.open());
    await using({ service, setup: 'check' }, (adapter) => adapter.open());
    await using({ services: ['mail'], setup: 'check' }, async (adapter) => {
      await expect(adapter.open()).rejects.toThrow(`has no queue "${name}.mail.dead"`);
    });
  });

  it('EN-09 setup "warn" logs an unsafe setting and continues', async () => {
    await using({ service: 'ledger' }, (adapter) => adapter.open());
    await withClient(url, async (client) => {
      await client.queueDelete(`${name}.ledger`);
      await client.queueDeclare({ queue: `${name}.ledger`, durable: true });
      await client.queueBind({ queue: `${name}.ledger`, exchange: name, routingKey: '#' });
    });
    await using({ service: 'ledger', setup: 'warn' }, async (adapter) => {
      const taken: TakenMessage[] = [];
      const lines = await logged(async (log) => {
        await adapter.publish(engineMessage(), { signal });
        return log.matching(/x-queue-type/);
      });
      expect(lines).toHaveLength(1);
      const store = (message: TakenMessage): StoreOutcome => {
        taken.push(message);
        return taken.length < 3 ? { action: 'retry', afterMs: 1 } : { action: 'acknowledge' };
      };
      await consume(adapter, store, () => expect(taken).toHaveLength(3));
      expect(taken.map(({ deliveries }) => deliveries)).toEqual([1, 2, 2]);
    });
  });

  it('EN-01 publish() rejects a message that no queue takes, until a service has created its queue', async () => {
    name = newName();
    await using({}, async (gateway) => {
      const publishing = gateway.publish(engineMessage(), { signal });
      await expect(publishing).rejects.toThrow('no queue takes it');
      const messages = Array.from({ length: 20 }, () => engineMessage());
      const results = await Promise.allSettled(
        messages.map((message) => gateway.publish(message, { signal })),
      );
      expect(new Set(results.map(({ status }) => status))).toEqual(new Set(['rejected']));
      await using({ services: ['ledger'] }, (other) => other.open());
      await gateway.publish(engineMessage(), { signal });
    });
  });

  it('EN-01 an exchange that was deleted after the check makes publish() reject, and is created again', async () => {
    await using({ services: ['ledger'] }, async (gateway) => {
      await gateway.publish(engineMessage(), { signal });
      await withClient(url, (client) => client.exchangeDelete({ exchange: name }));
      await expect(gateway.publish(engineMessage(), { signal })).rejects.toThrow();
      await eventually(() => gateway.publish(engineMessage(), { signal }));
    });
  });

  it('EN-01 if the server does not confirm a message before the signal aborts, publish() does not keep the message', async () => {
    const [proxy, through] = await TcpProxy.before(url);
    await using({ url: through, services: ['ledger'] }, async (gateway) => {
      await gateway.publish(engineMessage(), { signal });
      proxy.silence(true);
      const since = performance.now();
      const late = AbortSignal.timeout(100);
      await expect(gateway.publish(engineMessage(), { signal: late })).rejects.toThrow();
      // Without a heartbeat, the client itself ends a connection after 30 seconds.
      expect(performance.now() - since).toBeLessThan(20_000);
      proxy.silence(false);
      await eventually(() => gateway.publish(engineMessage(), { signal }));
    });
    await proxy.close();
  });

  it('EN-02 attributes are headers of the CloudEvents binding, and the message is persistent', async () => {
    const message = engineMessage();
    await using({ services: ['ledger'] }, (gateway) => gateway.publish(message, { signal }));
    const read = await withClient(url, (client) => client.basicGet(`${name}.ledger`));
    const { datacontenttype, ...attributes } = message.attributes;
    const headers = Object.entries(attributes).map(([key, value]) => [`cloudEvents:${key}`, value]);
    expect(read).toMatchObject({
      headers: Object.fromEntries(headers),
      contentType: datacontenttype,
      messageId: message.id,
      routingKey: message.attributes.type,
      durable: true,
    });
  });

  it('EN-05 a foreign message with JSON or text becomes a dead letter', async () => {
    const bytes = ['{"amount":1}', 'not JSON'].map((body) => Buffer.from(body));
    await using({ service: 'ledger', maxInProgress: 1 }, async (adapter) => {
      await adapter.open();
      await withClient(url, async (client) => {
        const publisher = client.createPublisher({ confirm: true });
        const types = ['application/json', 'text/plain'];
        for (const [index, contentType] of types.entries()) {
          // A header that would route the dead letter to the queue of the service again.
          const headers = { CC: [`${name}.ledger`], cloudEvents_id: 'one', 'cloudEvents:n': 1 };
          const envelope = { exchange: name, routingKey: 'x', contentType, headers };
          await publisher.send(envelope, bytes[index]);
        }
      });
      const taken: TakenMessage[] = [];
      const store = (message: TakenMessage): StoreOutcome => {
        taken.push(message);
        return { action: 'reject', code: 'payload_invalid' };
      };
      await consume(adapter, store, async () => {
        expect(await deadLetters(url, name, 'ledger')).toHaveLength(2);
      });
      expect(taken.map(({ body }) => Buffer.from(body))).toEqual(bytes);
      expect(taken[0]!.attributes).toMatchObject({ id: 'one', n: '1' });
      const raw = await withClient(url, (client) => client.basicGet(`${name}.ledger.dead`));
      expect(raw!.headers).not.toHaveProperty('CC');
    });
  });

  it('EN-02 publish() rejects a message whose attributes are too large for a frame, and no other message', async () => {
    await using({ services: ['ledger'] }, async (gateway) => {
      const large = engineMessage({ transaction: 'x'.repeat(10_000) });
      const other = gateway.publish(engineMessage(), { signal });
      await expect(gateway.publish(large, { signal })).rejects.toThrow('do not fit into a frame');
      await other;
    });
    await using({ connection: { ...connection, frameMax: 65_536 } }, async (gateway) => {
      const large = engineMessage({ transaction: 'x'.repeat(10_000) });
      await gateway.publish(large, { signal });
    });
  });

  it('EN-05 a foreign message with headers that do not fit into a frame becomes a dead letter', async () => {
    await using({ service: 'ledger' }, async (adapter) => {
      await adapter.open();
      await withClient(
        url,
        async (client) => {
          const publisher = client.createPublisher({ confirm: true });
          const headers = { 'cloudEvents:large': 'x'.repeat(20_000), list: [1, 'two'] };
          await publisher.send({ exchange: name, routingKey: 'x', headers }, Buffer.from('body'));
        },
        65_536,
      );
      const store = (): StoreOutcome => ({ action: 'reject', code: 'company_unknown' });
      await consume(adapter, store, async () => {
        const letters = await deadLetters(url, name, 'ledger');
        expect(letters).toEqual([{ code: 'company_unknown', body: Buffer.from('body') }]);
      });
    });
  });

  it('EN-03 a message that waits for its next delivery is returned when the application closes', async () => {
    await using({ service: 'ledger' }, async (adapter) => {
      const message = engineMessage();
      await adapter.open();
      await adapter.publish(message, { signal });
      const taken: TakenMessage[] = [];
      const store = (one: TakenMessage): StoreOutcome => {
        taken.push(one);
        return { action: 'retry', afterMs: 3_600_000 };
      };
      await consume(adapter, store, () => expect(taken).toHaveLength(1));
      await consume(adapter, store, () => expect(taken).toHaveLength(2));
      expect(taken[1]!.attributes['id']).toBe(message.attributes.id);
      expect(taken[1]!.deliveries).toBe(2);
    });
  });

  it('EN-05 a rejected message stays in its queue if the queue of dead letters is missing', async () => {
    await using({ service: 'ledger' }, async (adapter) => {
      const message = engineMessage();
      await adapter.publish(message, { signal });
      const stop = new AbortController();
      const lines = await logged(async (log) => {
        const consuming = adapter.consume(async () => {
          // The queue is deleted only now, because consume() creates a missing queue.
          await withClient(url, (client) => client.queueDelete(`${name}.ledger.dead`));
          return { action: 'reject', code: 'payload_invalid' };
        }, stop);
        await eventually(() => expect(log.matching(/stays in its queue/)).toHaveLength(1));
        stop.abort();
        await consuming;
        return log.lines.join('\n');
      });
      expect(lines).toContain('no queue takes it');
      expect(lines).not.toContain(message.attributes.id);
      const kept = await withClient(url, (client) => client.basicGet(`${name}.ledger`));
      expect(kept!.messageId).toBe(message.id);
    });
  });

  it('EN-07 after a lost connection, consume() rejects, its message is delivered again, and publish() connects again', async () => {
    const [proxy, through] = await TcpProxy.before(url);
    await using({ url: through, service: 'ledger' }, async (adapter) => {
      const message = engineMessage();
      await adapter.publish(message, { signal });
      const taken: TakenMessage[] = [];
      const first = Promise.withResolvers<StoreOutcome>();
      const consuming = adapter.consume(
        (one) => {
          taken.push(one);
          return first.promise;
        },
        { signal },
      );
      consuming.catch(() => {});
      await eventually(() => expect(taken).toHaveLength(1));
      await proxy.close();
      first.resolve({ action: 'acknowledge' });
      await expect(consuming).rejects.toThrow('closed');
      await expect(adapter.publish(engineMessage(), { signal })).rejects.toThrow();
      await proxy.open();
      const other = engineMessage();
      await eventually(() => adapter.publish(other, { signal }));
      const store = (one: TakenMessage): StoreOutcome => {
        taken.push(one);
        return { action: 'acknowledge' };
      };
      await consume(adapter, store, () => expect(taken).toHaveLength(3));
      const counted = taken.map(
        ({ attributes, deliveries }) => `${attributes['id']} ${deliveries}`,
      );
      const { id } = message.attributes;
      expect(counted.toSorted()).toEqual(
        [`${id} 1`, `${id} 2`, `${other.attributes.id} 1`].toSorted(),
      );
    });
    await proxy.close();
  });

  it('EN-07 while RabbitMQ has an alarm, publish() rejects and consume() continues, and publish() succeeds afterwards', async () => {
    const server = await sharedServer();
    const watermark = (value: string) => server.control('set_vm_memory_high_watermark', value);
    await using({ service: 'ledger' }, async (adapter) => {
      const message = engineMessage();
      await adapter.publish(message, { signal });
      await watermark('0');
      try {
        const stop = new AbortController();
        // The server blocks a connection when it publishes.
        const first = expect(adapter.publish(engineMessage(), stop)).rejects.toThrow();
        await eventually(async () =>
          expect(await server.control('list_connections', 'state')).toContain('blocked'),
        );
        const next = adapter.publish(engineMessage(), { signal });
        await expect(next).rejects.toThrow('alarm of memory or disk space');
        const taken: TakenMessage[] = [];
        const store = (one: TakenMessage): StoreOutcome => {
          taken.push(one);
          return { action: 'acknowledge' };
        };
        await consume(adapter, store, () => expect(taken).toHaveLength(1));
        expect(taken[0]!.attributes['id']).toBe(message.attributes.id);
        stop.abort();
        await first;
      } finally {
        await watermark('0.4');
      }
      await eventually(() =>
        adapter.publish(engineMessage(), { signal: AbortSignal.timeout(5000) }),
      );
    });
  });

  it('EN-10 consume() rejects if its queue is deleted', async () => {
    await using({ service: 'ledger' }, async (adapter) => {
      await adapter.open();
      const store = async (): Promise<StoreOutcome> => ({ action: 'acknowledge' });
      const consuming = adapter.consume(store, { signal });
      consuming.catch(() => {});
      await eventually(() =>
        withClient(url, async (client) => {
          const { consumerCount } = await client.queueDeclare({
            queue: `${name}.ledger`,
            passive: true,
          });
          expect(consumerCount).toBe(1);
        }),
      );
      await withClient(url, (client) => client.queueDelete(`${name}.ledger`));
      await expect(consuming).rejects.toThrow('queue may have been deleted');
    });
  });

  it('EN-11 an error of the login contains no password', async () => {
    const wrong = url.replace('s3cret-password', 's3cret-other');
    await using({ url: wrong }, async (adapter) => {
      const error = await adapter.open().catch((reason: unknown) => reason);
      expect(String(error)).toContain('ACCESS_REFUSED');
      expect(inspect(error, { depth: 10 })).not.toContain('s3cret');
    });
  });
});
