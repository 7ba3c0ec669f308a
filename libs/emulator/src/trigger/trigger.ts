import type { DeliveryRecord } from '../deliveries/delivery.record.js';
import type { WebhookEvent } from '../deliveries/webhook.event.js';
import type { EmulatorCore } from '../emulator.core.js';
import type { Transaction } from '../transactions/transaction.record.js';
import type { TriggerInput } from './trigger-input.js';
import { checkTrigger, TRANSACTION_COMPLETED } from './trigger-input.js';

/** An event that was triggered, and how its first delivery ended. */
export interface TriggeredEvent {
  /** The completed transaction; undefined for other events. */
  readonly transaction: Transaction | undefined;
  readonly event: WebhookEvent;
  /** The first attempt to deliver the event, ended: `state` says whether it was delivered. */
  readonly delivery: DeliveryRecord;
}

/**
 * Sends an event and waits until its first delivery has ended. For `transaction.completed` it creates
 * and completes a checkout invoice, or completes the transaction named.
 *
 * @throws EmulatorInputError, or EmulatorError `not_found` or `conflict` for the transaction named
 */
export async function triggerEvent(core: EmulatorCore, input: unknown): Promise<TriggeredEvent> {
  const trigger = checkTrigger(input);
  if (trigger.eventType !== TRANSACTION_COMPLETED) {
    const { companyId, environment, eventType, data, metadata } = trigger;
    const asked = { companyId, environment, eventType, data, metadata };
    const { event, firstAttempt } = core.sendEvent(asked);
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
