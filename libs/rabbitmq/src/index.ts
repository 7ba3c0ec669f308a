/**
 * Hands the events of nestjs-payments over to RabbitMQ, and takes them from it.
 *
 * @module nestjs-payments-rabbitmq
 */
export { rabbitMQ } from './rabbitmq.js';
export type { RabbitMQConnection, RabbitMQOptions } from './rabbitmq-options.js';
