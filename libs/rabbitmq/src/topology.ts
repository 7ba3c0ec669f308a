import { setTimeout as delay } from 'node:timers/promises';
import { reportUnsafe } from 'nestjs-payments/engines';
import type { engineLog } from 'nestjs-payments/engines';
import type { Connection } from 'rabbitmq-client';
import type { ResolvedRabbitMQOptions } from './rabbitmq-options.js';

/**
 * Milliseconds between the creation of a queue and its first message. RabbitMQ writes the directory of its quorum
 * queues to disk 500 ms after a change (`auto_save` in `ra_directory.erl`). If RabbitMQ is killed before that, it
 * starts the queue as a new one: empty, without a leader, and without the messages that it had confirmed.
 */
const CREATED_MS = 2000;

/**
 * The settings of all queues. By default, RabbitMQ 4 drops a message after 20 deliveries. The value -1 (no limit) does
 * not work, because some earlier versions take it for one delivery. With the waits of the module, a billion deliveries
 * take decades.
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
 * Creates exchange and queues if they are missing, and checks their settings, as the option `setup` says. A declaration
 * with the right settings is the check, because AMQP cannot read settings: If the exchange or queue exists, RabbitMQ
 * compares the declared settings with those that it has, and rejects the declaration if they differ. RabbitMQ does not
 * compare policies.
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
  /** Rejects with `NOT_FOUND` if the exchange or the queue is missing and must not be created. */
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
  // A queue gets only messages that are published after it was bound.
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
 * Returns the reason for which the server refused a declaration, and the fix.
 *
 * @throws the error if it is not about the exchange or the queue, such as a lost connection
 */
function problemOf(what: string, error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (!REFUSALS.has(code)) throw error;
  if (code === 'NOT_FOUND') return `RabbitMQ has no ${what}. Create it, or set setup: 'create'.`;
  const fix =
    code === 'ACCESS_REFUSED'
      ? 'Grant the user the permission "configure" for it.'
      : 'With this setting, events can be lost. RabbitMQ cannot change it, so delete the exchange, or the queue when it ' +
        "is empty, and start again with setup: 'create'.";
  return `RabbitMQ refuses the ${what}: ${String(message)}. ${fix}`;
}
