/**
 * The module for applications: options, handlers, the inbox, and calls to the payments service.
 *
 * @module nestjs-payments
 */
export { PaymentsModule } from './payments.module.js';
export type { PaymentsModuleExtras } from './payments.module.js';
export {
  checkPaymentsEnvironment,
  paymentsConfig,
  readPaymentsEnvironment,
} from './payments-environment.js';
export type { PaymentsModuleOptions, PaymentsOptionsFactory } from './payments-options.js';
export { PaymentsError, UnrecoverableError } from './errors/payments-error.js';
export type { PaymentsErrorCode } from './errors/payments-error-code.js';
export { ThrottledLog } from './errors/module-log.js';
export type { PaymentsRuntime } from './runtime/payments-runtime.js';

export { DEFAULT_COMPANY, SigningKey } from './companies/company.js';
export type { Company, CompanyDirectory } from './companies/company.js';

export { signBody, verifySignature } from './webhook/signature.js';
export { WebhookGuard } from './webhook/webhook.guard.js';
export type { VerifiedRequest } from './webhook/webhook.guard.js';
export type {
  AdmissionCheck,
  AdmissionRejection,
  AdmissionRequest,
  WebhookOptions,
} from './webhook/webhook-options.js';

export { memoryInbox } from './stores/memory/memory-store.js';
export type { MemoryInboxOptions } from './stores/memory/memory-store.js';
export type { BodyCodec, BodyContext } from './inbox/store/body-codec.js';
export { PaymentInbox } from './inbox/payment-inbox.js';
export { PaymentInboxError, VerifiedEvent } from './inbox/receive/event-receiver.js';
export type { ListQuery } from './inbox/payment-inbox.js';
export type { InboxHandler } from './inbox/store/handler-catalog-cache.js';
export type { EventSummary } from './inbox/store/stored-event.js';
export type { InboxReceipt } from './inbox/receive/event-receiver.js';
export type { HandlerLoad, RunDueResult } from './inbox/work/inbox-worker.js';
export type { AuditEntry, StoredAuditEntry } from './inbox/operate/audit-trail.js';
export { errorParts } from './inbox/operate/failure-groups.js';
export type {
  Acknowledgement,
  FailureGroup,
  Failures,
  StoredAcknowledgement,
} from './inbox/operate/failure-groups.js';
export type {
  DeliveryQuery,
  RedriveQuery,
  SelectionResult,
} from './inbox/operate/inbox-redrive.js';
export type { InboxProcess, ProcessReport } from './inbox/operate/process-reports.js';
export type { CompanyFacts, FactsSnapshot, RequestCounts } from './telemetry/process-facts.js';
export type { RedriveJob, RedriveJobOptions } from './inbox/operate/redrive-jobs.js';
export type { ReceiveOptions } from './inbox/receive/receive-options.js';
export type { WorkerOptions } from './inbox/work/worker-options.js';
export type { InboxDefinition } from './inbox/store/inbox-store.js';
export { NOT_REQUESTED_CODES, PaymentExpectations } from './expectations/payment-expectations.js';
export type {
  ExpectationKey,
  ExpectOptions,
  RequestedPayment,
} from './expectations/payment-expectations.js';
export { byStatus } from './expectations/reconcile-options.js';
export type {
  Interpretation,
  InterpretTransaction,
  ReconcileOptions,
} from './expectations/reconcile-options.js';
export type {
  ActivityCounts,
  ActivityMinute,
  CappedCount,
  DeliveryAttempt,
  DeliveryState,
  EventFilter,
  EventPage,
  EventState,
  ExpectationCounts,
  ExpectationFilter,
  ExpectationPage,
  ExpectationState,
  HandlerPause,
  InboxCapabilities,
  InboxActivity,
  InboxStats,
  PauseFacts,
  PollResult,
  RangeCounts,
  RequestState,
  StoredDelivery,
  StoredEvent,
  StoredExpectation,
} from './inbox/store/inbox-store.js';

export type {
  EngineAttributes,
  EngineCall,
  EngineMessage,
  EngineStatus,
  EventRelay,
  MessageSource,
  StoreMessage,
  StoreOutcome,
  TakenMessage,
} from './engines/engine.js';

export { exponential, fixed, none } from './events/retry-schedule.js';
export type { ExponentialOptions, RetrySchedule } from './events/retry-schedule.js';
export { PAYMENTS_CONTEXT } from './events/handler-invoker.js';
export { OnPaymentEvent, OnPaymentOverdue } from './events/on-payment-event.decorator.js';
export type { MatchedType, OnPaymentEventOptions } from './events/on-payment-event.decorator.js';
export type {
  Commit,
  PaymentEvent,
  PaymentEventContext,
  PaymentEventData,
  PaymentEventMap,
  PaymentEventSource,
  PaymentEventType,
  PaymentOverdueData,
  PaymentOverdueEvent,
  TransactionCompletedData,
} from './events/payment-event.js';

export type { StandardSchema, StandardSchemaResult } from './events/standard-schema.js';

export { PaymentsApiService } from './api/payments-api.service.js';
export type { PaymentsApi } from './api/payments-api.service.js';
export type {
  ApiMethod,
  ApiResponse,
  CallOptions,
  PaymentTransaction,
  RequestOptions,
} from './api/payments-api.js';
export { PaymentsApiError } from './api/api-error.js';
export type { ApiErrorFacts } from './api/api-error.js';
export { PaymentsTokenError } from './api/access-token.js';
export type { PaymentsApiOptions, RetryPolicy } from './api/api-options.js';

export { PaymentsSetup, SETUP_CHECKS } from './setup/payments-setup.js';
export type { SetupCheck, SetupCheckOptions } from './setup/payments-setup.js';

export type { ObserverInfo, PaymentsObserver } from './telemetry/observers.js';
