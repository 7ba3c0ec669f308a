import type { EventRelay, MessageSource } from 'nestjs-payments';

/** The engines whose adapters this repository has. */
export type EngineName = 'jetstream' | 'bullmq' | 'rabbitmq';

/** The stream, queue or exchange, unless {@link EngineAccess.events} names another. */
export const EVENTS = 'PAYMENTS';

/** How a gateway or a worker service reaches its engine. */
export interface EngineAccess {
  readonly engine: EngineName;
  readonly url: string;
  /** The names of all worker services. */
  readonly services: readonly string[];
  /** The name of the worker service. A gateway has none. */
  readonly service?: string;
  readonly events?: string;
}

/** Creates the adapter of an engine. Loads only the client of that engine. */
export async function createEngineAdapter(
  access: EngineAccess,
): Promise<EventRelay & MessageSource> {
  const { engine, url, services, service, events = EVENTS } = access;
  const named = service === undefined ? {} : { service };
  if (engine === 'jetstream') {
    const { jetStream } = await import('nestjs-payments-jetstream');
    // The tests kill the server, but not the machine.
    return jetStream({ servers: url, stream: events, oneReplica: true, ...named });
  }
  if (engine === 'bullmq') {
    const { bullMQ } = await import('nestjs-payments-bullmq');
    return bullMQ({ connection: url, queue: events, services, ...named });
  }
  const { rabbitMQ } = await import('nestjs-payments-rabbitmq');
  return rabbitMQ({ url, exchange: events, services, ...named });
}
