/**
 * Hands the events of nestjs-payments over to RabbitMQ, and takes events from RabbitMQ.
 *
 * @module nestjs-payments-rabbitmq
 */
export { rabbitMQ } from './rabbitmq.js';
export type { RabbitMQConnection, RabbitMQOptions } from './rabbitmq-options.js';
