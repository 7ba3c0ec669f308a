import { IsOptional, IsString, Length } from 'class-validator';
import { validateInput } from '../validate-input.js';
import { EmulatorInputError } from '../emulator-errors.js';
import { NewEvent } from '../transactions/transaction-inputs.js';

/** The event type that belongs to a transaction. */
export const TRANSACTION_COMPLETED = 'transaction.completed';

/**
 * An event to trigger. For `transaction.completed`, the emulator first completes a transaction. The event contains the
 * data of this transaction, so the field `data` is not allowed.
 */
export class TriggerInput extends NewEvent {
  /** The open transaction to complete, for `transaction.completed` only. Default: a new transaction. */
  @IsOptional()
  @IsString({ message: 'transactionId must be a string' })
  transactionId?: string | undefined;

  /** The new transaction's amount, for `transaction.completed` only. Default: 100. */
  @IsOptional()
  amount?: number | undefined;

  /** The client's own reference, for `transaction.completed` only. Default: `order-` and 8 hex digits. */
  @IsOptional()
  @Length(1, 256, { message: 'externalReference must be a string of 1 to 256 characters' })
  externalReference?: string | undefined;
}

/**
 * Validates the input of a trigger, including combinations of fields. @throws EmulatorInputError that names each
 * invalid field
 */
export function checkTrigger(input: unknown): TriggerInput {
  const trigger = validateInput(TriggerInput, input);
  const given = (...fields: (keyof TriggerInput)[]): string[] =>
    fields.filter((field) => trigger[field] !== undefined);
  const problems =
    trigger.eventType !== TRANSACTION_COMPLETED
      ? given('transactionId', 'amount', 'externalReference').map(
          (field) =>
            `${field} is for ${TRANSACTION_COMPLETED} only; for other event types, put it into data`,
        )
      : [
          ...given('data').map(
            (field) =>
              `${field} is not allowed for ${TRANSACTION_COMPLETED}, because the event contains the data of the transaction`,
          ),
          ...(trigger.transactionId === undefined
            ? []
            : given('companyId', 'amount', 'externalReference', 'metadata').map(
                (field) =>
                  `${field} is not allowed with transactionId, because the existing transaction determines it`,
              )),
        ];
  if (problems.length > 0) throw new EmulatorInputError(problems);
  return trigger;
}
