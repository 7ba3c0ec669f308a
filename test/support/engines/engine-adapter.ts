import type { EventRelay, MessageSource } from 'nestjs-payments';

/** The engines whose adapters this repository has. */
export type EngineName = 'jetstream' | 'bullmq' | 'rabbitmq';

/** The stream, queue or exchange of {@link engineAdapter}. */
export const EVENTS = 'PAYMENTS';

/**
 * Creates the adapter of an engine at `url`: for a worker service with its name, or for the gateway of `services`. Loads
 * only the client of that engine.
 */
export async function engineAdapter(
  engine: EngineName,
  url: string,
  services: readonly string[],
  service?: string,
): Promise<EventRelay & MessageSource> {
  const named = service === undefined ? {} : { service };
  if (engine === 'jetstream') {
    const { jetStream } = await import('nestjs-payments-jetstream');
    return jetStream({ servers: url, stream: EVENTS, ...named }) as EventRelay & MessageSource;
  }
  if (engine === 'bullmq') {
    const { bullMQ } = await import('nestjs-payments-bullmq');
    return bullMQ({ connection: url, queue: EVENTS, services, ...named });
  }
  const { rabbitMQ } = await import('nestjs-payments-rabbitmq');
  return rabbitMQ({ url, exchange: EVENTS, services, ...named });
}
