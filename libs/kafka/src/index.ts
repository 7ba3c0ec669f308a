/**
 * Hands the events of nestjs-payments over to Kafka, and takes them from it.
 *
 * @module nestjs-payments-kafka
 */
export { kafka } from './kafka.js';
export type { KafkaConnection, KafkaOptions } from './kafka-options.js';
