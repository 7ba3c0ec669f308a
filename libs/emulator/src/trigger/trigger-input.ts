import 'reflect-metadata';
import { IsObject, IsOptional, IsString, Length } from 'class-validator';
import type { Environment } from '../companies/company.js';
import { IsCompanyId, IsEnvironment } from '../companies/company-validators.js';
import { EmulatorInputError } from '../emulator-errors.js';
import { checkInput } from '../check-input.js';
import { IsEventType } from '../transactions/transaction-validators.js';

/** The event type that requires a transaction. */
export const TRANSACTION_COMPLETED = 'transaction.completed';

/** An event to trigger. `transaction.completed` completes a transaction first. */
export class TriggerInput {
  /** `transaction.completed`, or any other type: 1 to 128 visible ASCII characters. */
  @IsEventType()
  eventType!: string;

  /** Default: the company that the emulator started with. */
  @IsOptional()
  @IsCompanyId()
  companyId?: string | undefined;

  /** Default: `sandbox`; over HTTP, the environment of the called host. */
  @IsOptional()
  @IsEnvironment()
  environment?: Environment | undefined;

  /** `transaction.completed` only: the open transaction to complete. Default: a new one. */
  @IsOptional()
  @IsString({ message: 'transactionId must be a string' })
  transactionId?: string | undefined;

  /** `transaction.completed` only: the new transaction's amount. Default: 100. */
  @IsOptional()
  amount?: number | undefined;

  /** `transaction.completed` only: the client's own reference. Default: `order-` and 8 hex digits. */
  @IsOptional()
  @Length(1, 256, { message: 'externalReference must be a string of 1 to 256 characters' })
  externalReference?: string | undefined;

  /** The event's data; not for `transaction.completed`, whose data is the transaction. Default: `{}`. */
  @IsOptional()
  @IsObject({ message: 'data must be a JSON object' })
  data?: Record<string, unknown> | undefined;

  /** The event's metadata. Default: `{}`. */
  @IsOptional()
  @IsObject({ message: 'metadata must be a JSON object' })
  metadata?: Record<string, unknown> | undefined;
}

/**
 * Validates an event to trigger, including which fields exclude each other.
 *
 * @throws EmulatorInputError that names each invalid field
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
