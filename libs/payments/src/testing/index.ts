/**
 * Helpers for tests of handlers and of the webhook route.
 *
 * @module nestjs-payments/testing
 */
export { deliver } from './deliver.js';
export type { DeliverOptions, DeliverResponse } from './deliver.js';
export { apiError, FakePaymentsApi } from './fake-payments-api.js';
export type { FakeCall, FakeResponse } from './fake-payments-api.js';
export { handlerContext, paymentEvent, signedRequest } from './payment-event-builders.js';
export type {
  EnvelopeFields,
  EventData,
  PaymentEventArguments,
  SignedRequest,
  SignedRequestOptions,
  WebhookBody,
} from './payment-event-builders.js';
export { settled } from './settled.js';
export type { SettledOptions } from './settled.js';
export { TestRuntime } from './test-runtime.js';
export type { TestRuntimeOptions } from './test-runtime.js';
