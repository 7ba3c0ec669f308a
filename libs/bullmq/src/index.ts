/**
 * Hands the events of nestjs-payments over to BullMQ, and takes them from it.
 *
 * @module nestjs-payments-bullmq
 */
export { bullMQ } from './bullmq-engine.js';
export type { BullMQConnection, BullMQOptions } from './bullmq-options.js';
