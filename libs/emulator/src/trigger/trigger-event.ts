import type { DeliveryAttempt } from '../deliveries/delivery-attempt.js';
import type { WebhookEvent } from '../deliveries/delivery-request.js';
import type { EmulatorCore } from '../emulator-core.js';
import type { Transaction } from '../transactions/transaction.js';
import type { TriggerInput } from './trigger-input.js';
import { checkTrigger, TRANSACTION_COMPLETED } from './trigger-input.js';

/** A triggered event, and the result of the first delivery of the event. */
export interface TriggeredEvent {
  /** The completed transaction; undefined for other events. */
  readonly transaction: Transaction | undefined;
  readonly event: WebhookEvent;
  /** The first attempt, which has ended. The `state` of the attempt is the result. */
  readonly delivery: DeliveryAttempt;
}

/**
 * Sends an event, and waits until the first delivery of the event has ended. For `transaction.completed`, creates and
 * completes a checkout invoice, or completes the given transaction.
 *
 * @throws EmulatorInputError, or EmulatorError `not_found` or `conflict` for the given transaction
 */
export async function triggerEvent(core: EmulatorCore, input: unknown): Promise<TriggeredEvent> {
  const trigger = checkTrigger(input);
  if (trigger.eventType !== TRANSACTION_COMPLETED) {
    const { companyId, environment, eventType, data, metadata } = trigger;
    const newEvent = { companyId, environment, eventType, data, metadata };
    const { event, firstAttempt } = core.sendEvent(newEvent);
    return { transaction: undefined, event, delivery: await firstAttempt };
  }
  const transactionId = trigger.transactionId ?? createPayment(core, trigger).transactionId;
  const { transaction, event, firstAttempt } = core.completeAndSend(transactionId);
  return { transaction, event, delivery: await firstAttempt };
}

function createPayment(core: EmulatorCore, trigger: TriggerInput): Transaction {
  const { companyId, environment, metadata } = trigger;
  const { amount = 100, externalReference = `order-${core.random.id('reference').slice(0, 8)}` } =
    trigger;
  const payment = { companyId, environment, metadata, amount, externalReference };
  return core.createPayment('checkout-invoice', payment);
}
