export { PaymentsEmulator } from './payments-emulator.js';
export type { PaymentsEmulatorOptions } from './emulator-options.js';
export type { NetworkOptions } from './network-access.js';
export type { LookupAll } from './deliveries/public-fetch.js';
export type { ResponseShapes, ServiceError } from './http/response-shapes.js';
export { EmulatorError, EmulatorInputError } from './emulator-errors.js';
export type { EmulatorErrorCode } from './emulator-errors.js';
export type { CompletedTransaction } from './emulator-core.js';
export type { EmulatorClock } from './runtime/emulator-clock.js';
export { ManualClock } from './runtime/manual-clock.js';
export type {
  ClientCredentials,
  CompanyCredentials,
  Environment,
  WebhookSettings,
} from './companies/company.js';
export type {
  ClientSecretInput,
  CompanyInput,
  NewCompany,
  RevocationInput,
  WebhookInput,
  WebhookSecretInput,
} from './companies/company-inputs.js';
export type {
  NewCompanyPayment,
  NewEvent,
  NewPayment,
  NewTransaction,
  TransactionFilter,
} from './transactions/transaction-inputs.js';
export type {
  CheckoutInvoice,
  Transaction,
  TransactionFields,
  TransactionKind,
} from './transactions/transaction.js';
export type {
  DeliveryCause,
  DeliveryFailure,
  DeliveryAttempt,
  DeliveryState,
} from './deliveries/delivery-attempt.js';
export type { DeliveryFilter, NewBody } from './deliveries/delivery-inputs.js';
export type { TriggerInput } from './trigger/trigger-input.js';
export type { TriggeredEvent } from './trigger/trigger-event.js';
export type { WebhookEvent } from './deliveries/delivery-request.js';
export { signDelivery } from './deliveries/delivery-request.js';
export type {
  ApiFaults,
  ResponseFaults,
  DeliveryFaults,
  FaultDelay,
  FaultPlan,
  FaultsOf,
  FaultTrigger,
  TokenFaults,
} from './faults/fault-plan.js';
export type { TokenResponse } from './auth/token-exchange.js';
