/**
 * Hands the events of `nestjs-payments` over to NATS JetStream, and takes events from JetStream.
 *
 * @module nestjs-payments-jetstream
 */
export { jetStream } from './jet-stream.js';
export type { JetStreamConnectionOptions, JetStreamOptions } from './jet-stream-options.js';
