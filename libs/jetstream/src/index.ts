/**
 * Hands the events of `nestjs-payments` over to NATS JetStream, and takes them from it.
 *
 * @module nestjs-payments-jetstream
 */
export { jetStream } from './jet-stream.js';
export type { JetStreamConnectionOptions, JetStreamOptions } from './jet-stream-options.js';
