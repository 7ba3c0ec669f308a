// Publishes or consumes messages with the own client of an engine. The guarantees are those of the adapters: a message is
// published when the engine has stored it, and acknowledged after the handler.
import { AckPolicy, jetstream, jetstreamManager, StorageType } from '@nats-io/jetstream';
import { connect, headers as natsHeaders } from '@nats-io/transport-node';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { Connection } from 'rabbitmq-client';
import type { Consumer } from 'rabbitmq-client';
import type { EngineName } from 'test-postgres/engines/create-engine-adapter';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { delivery } from '../load/webhook-requests.ts';
import { concurrently } from '../rows/shared/run-store-operations.ts';
import { HandlerCounter } from './handler-counter.ts';

/** The configuration of a process. */
export interface EngineClientConfig {
  readonly engine: EngineName;
  readonly url: string;
  /** The stream or the queue. */
  readonly name: string;
  /** The number of messages that the process publishes; `null` if it consumes messages. */
  readonly publish: number | null;
  /** Whether the counter counts. A publisher does not count if the calls of the consumer are measured. */
  readonly counts: boolean;
}

interface Message {
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

interface Client {
  publish(message: Message): Promise<unknown>;
  consume(handle: () => void): Promise<void>;
  close(): Promise<unknown>;
}

/** The messages that are published or consumed at the same time, as in the adapters. */
const WIDTH = 100;

const { engine, url, name, publish, counts } = configuration() as EngineClientConfig;
const counter = new HandlerCounter();
const count = counts ? counter.handle : (): void => {};
let client: Client;
let messages: Message[];
let publishing: Promise<void> = Promise.resolve();

serveCommands(null, {
  async prepare() {
    counter.reset();
    client = await { jetstream: openJetStream, bullmq: openBullMQ, rabbitmq: openRabbitMQ }[
      engine
    ]();
    messages = Array.from({ length: publish ?? 0 }, createMessage);
  },
  async go() {
    if (publish === null) return client.consume(count);
    publishing = concurrently(messages, WIDTH, async (message) => {
      await client.publish(message);
      count();
    });
  },
  handled: counter.handled,
  async stop() {
    await publishing;
    await client.close();
  },
});

/** Creates a message with the attributes that a gateway adds to an event. */
function createMessage(): Message {
  const { body, headers } = delivery('payments');
  const { id, eventType, timestamp, data } = JSON.parse(body.toString()) as {
    id: string;
    eventType: string;
    timestamp: string;
    data: { transactionId: string };
  };
  const subject = data.transactionId;
  const attributes = {
    specversion: '1.0',
    id,
    source: '/payments/default',
    type: eventType,
    time: timestamp,
    company: 'default',
    signature: Object.entries(headers).find(([header]) => header.includes('signature'))![1],
    origin: 'webhook',
    partitionkey: `default/${subject}`,
    subject,
  };
  return { id: `default/${id}`, headers: attributes, body };
}

async function openJetStream(): Promise<Client> {
  const { host, username, password } = new URL(url);
  const connection = await connect({ servers: host, user: username, pass: password });
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name, subjects: [`${name}.>`], storage: StorageType.File });
  await manager.consumers.add(name, { durable_name: 'ledger', ack_policy: AckPolicy.Explicit });
  const stream = jetstream(connection);
  return {
    publish: ({ id, headers: attributes, body }) => {
      const headers = natsHeaders();
      for (const [key, value] of Object.entries(attributes)) headers.set(`ce-${key}`, value);
      return stream.publish(`${name}.default`, body, { headers, msgID: id });
    },
    consume: async (handle) => {
      const consumer = await stream.consumers.get(name, 'ledger');
      await consumer.consume({
        max_messages: WIDTH,
        callback: (message) => {
          handle();
          message.ack();
        },
      });
    },
    close: () => connection.close(),
  };
}

async function openBullMQ(): Promise<Client> {
  const connection = new Redis(url, { maxRetriesPerRequest: null });
  const queue = new Queue(name, { connection });
  await queue.waitUntilReady();
  let worker: Worker | undefined;
  return {
    publish: ({ id, headers, body }) => {
      const data = { ...headers, data_base64: body.toString('base64') };
      return queue.add('event', data, { jobId: id, removeOnComplete: true });
    },
    consume: async (handle) => {
      worker = new Worker(name, async () => handle(), { connection, concurrency: WIDTH });
    },
    close: async () => {
      await worker?.close();
      await queue.close();
      connection.disconnect();
    },
  };
}

async function openRabbitMQ(): Promise<Client> {
  const connection = new Connection(url);
  const arguments_ = { 'x-queue-type': 'quorum' as const };
  await connection.queueDeclare({ queue: name, durable: true, arguments: arguments_ });
  const publisher = connection.createPublisher({ confirm: true });
  let consumer: Consumer | undefined;
  return {
    publish: ({ id, headers, body }) =>
      publisher.send(
        { routingKey: name, durable: true, mandatory: true, messageId: id, headers },
        body,
      ),
    consume: async (handle) => {
      const options = {
        queue: name,
        queueOptions: { passive: true },
        qos: { prefetchCount: WIDTH },
      };
      consumer = connection.createConsumer(options, async () => handle());
    },
    // The connection waits for its publishers and consumers.
    close: async () => {
      await consumer?.close();
      await publisher.close();
      await connection.close();
    },
  };
}
