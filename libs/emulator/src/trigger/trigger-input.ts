import 'reflect-metadata';
import { IsOptional, IsString } from 'class-validator';
import { EmulatorInputError } from '../emulator.errors.js';
import { checkInput } from '../emulator.input.js';
import { NewEvent } from '../transactions/transaction.inputs.js';

/** The event type that needs a transaction. */
export const TRANSACTION_COMPLETED = 'transaction.completed';

/**
 * An event to trigger. `transaction.completed` completes a transaction first; its data is the transaction, so `data`
 * is for other types only.
 */
export class TriggerInput extends NewEvent {
  /** `transaction.completed` only: the open transaction to complete. Default: a new one. */
  @IsOptional()
  @IsString({ message: 'transactionId must be a string' })
  transactionId?: string | undefined;

  /** `transaction.completed` only: the new transaction's amount, checked when it is created. Default: 100. */
  @IsOptional()
  amount?: number | undefined;

  /**
   * `transaction.completed` only: the client's own reference, checked when the transaction is created. Default:
   * `order-` and 8 hex digits.
   */
  @IsOptional()
  externalReference?: string | undefined;
}

/**
 * Checks what to trigger, including which fields belong together.
 *
 * @throws EmulatorInputError naming each field that is wrong
 */
export function checkTrigger(input: unknown): TriggerInput {
  const trigger = checkInput(TriggerInput, input);
  const given = (...fields: (keyof TriggerInput)[]): string[] =>
    fields.filter((field) => trigger[field] !== undefined);
  const problems =
    trigger.eventType !== TRANSACTION_COMPLETED
      ? given('transactionId', 'amount', 'externalReference').map(
          (field) => `${field} is for ${TRANSACTION_COMPLETED} only; put it into data`,
        )
      : [
          ...given('data').map(
            (field) => `${field} is not for ${TRANSACTION_COMPLETED}: its data is the transaction`,
          ),
          ...(trigger.transactionId === undefined
            ? []
            : given('companyId', 'amount', 'externalReference', 'metadata').map(
                (field) => `${field} is fixed by the transaction that transactionId names`,
              )),
        ];
  if (problems.length > 0) throw new EmulatorInputError(problems);
  return trigger;
}
