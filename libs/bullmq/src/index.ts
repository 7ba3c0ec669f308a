/**
 * Hands the events of nestjs-payments over to BullMQ, and takes events from BullMQ.
 *
 * @module nestjs-payments-bullmq
 */
export { bullMQ } from './bullmq-engine.js';
export type { BullMQConnection, BullMQOptions } from './bullmq-options.js';
