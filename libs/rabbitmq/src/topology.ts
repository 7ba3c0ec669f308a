import { setTimeout as delay } from 'node:timers/promises';
import { reportUnsafe } from 'nestjs-payments/engines';
import type { engineLog } from 'nestjs-payments/engines';
import type { Connection } from 'rabbitmq-client';
import type { ResolvedRabbitMQOptions } from './rabbitmq-options.js';

/**
 * Milliseconds to wait between the creation of a queue and its first message. RabbitMQ writes the directory of its
 * quorum queues to disk 500 ms after a change (`auto_save` in `ra_directory.erl`). If RabbitMQ is killed before it has
 * written the directory, it starts the queue as a new queue: without a leader, and without the messages that it had
 * confirmed.
 */
const CREATED_MS = 2000;

/**
 * The settings of all queues. By default, RabbitMQ 4 drops a message after 20 deliveries. The value -1 (no limit) does
 * not work, because some earlier versions drop a message after one delivery if the value is -1. With the waits of the
 * module, a billion deliveries take decades.
 */
const QUORUM = {
  durable: true,
  arguments: { 'x-queue-type': 'quorum' as const, 'x-delivery-limit': 1_000_000_000 },
};

/** Returns the name of the queue of a service. */
export function queueOf(exchange: string, service: string): string {
  return `${exchange}.${service}`;
}

/** Returns the name of the queue with the dead letters of a service. */
export function deadQueueOf(exchange: string, service: string): string {
  return `${queueOf(exchange, service)}.dead`;
}

/**
 * Checks the settings of the exchange and the queues. Creates those that are missing if the option `setup` is `create`.
 * AMQP cannot read settings, so the adapter declares each exchange and queue with the right settings. If an exchange or
 * queue exists with other settings, RabbitMQ rejects its declaration. RabbitMQ does not compare policies.
 *
 * @throws PaymentsError `engine_unsafe`, unless `setup` is `warn`.
 */
export async function checkTopology(
  connection: Connection,
  options: ResolvedRabbitMQOptions,
  log: ReturnType<typeof engineLog>,
): Promise<void> {
  const { exchange, services } = options;
  const create = options.setup === 'create';
  let created = false;
  const check = async (what: string, ...steps: (() => Promise<unknown>)[]): Promise<void> => {
    try {
      for (const step of steps) await step();
    } catch (error) {
      reportUnsafe(problemOf(what, error), options, log);
    }
  };
  /** Rejects with `NOT_FOUND` if the exchange or the queue is missing and the adapter must not create it. */
  const exists = async (passive: Promise<unknown>): Promise<void> => {
    try {
      await passive;
    } catch (error) {
      if (!create || (error as { code?: unknown }).code !== 'NOT_FOUND') throw error;
      created = true;
    }
  };
  await check(
    `exchange "${exchange}"`,
    () => exists(connection.exchangeDeclare({ exchange, passive: true })),
    () => connection.exchangeDeclare({ exchange, type: 'topic', durable: true }),
  );
  for (const service of services) {
    for (const queue of [deadQueueOf(exchange, service), queueOf(exchange, service)]) {
      await check(
        `queue "${queue}"`,
        () => exists(connection.queueDeclare({ queue, passive: true })),
        () => connection.queueDeclare({ queue, ...QUORUM }),
      );
    }
  }
  if (!create) return;
  // A queue gets only messages that are published after the queue was bound to the exchange.
  if (created && services.length > 0) await delay(CREATED_MS);
  for (const service of services) {
    const queue = queueOf(exchange, service);
    await check(`queue "${queue}"`, () =>
      connection.queueBind({ queue, exchange, routingKey: '#' }),
    );
  }
}

const REFUSALS: ReadonlySet<unknown> = new Set([
  'NOT_FOUND',
  'RESOURCE_LOCKED',
  'ACCESS_REFUSED',
  'PRECONDITION_FAILED',
]);

/**
 * Returns why the server rejected a declaration, and the fix.
 *
 * @throws `error` if it is not about the exchange or the queue, but for example about a lost connection
 */
function problemOf(what: string, error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (!REFUSALS.has(code)) throw error;
  if (code === 'NOT_FOUND') return `RabbitMQ has no ${what}. Create it, or set setup: 'create'.`;
  const fix =
    code === 'ACCESS_REFUSED'
      ? 'Grant the user the permission "configure" for this exchange or queue.'
      : 'With this setting, events can be lost. RabbitMQ cannot change it, so delete the exchange, or the queue when it ' +
        "is empty, and start again with setup: 'create'.";
  return `RabbitMQ rejected the declaration of the ${what}: ${String(message)}. ${fix}`;
}
