import { Transform } from 'class-transformer';
import {
  IsBoolean,
  IsIn,
  IsInt,
  IsNumber,
  IsObject,
  IsOptional,
  IsString,
  Length,
  Max,
  Min,
} from 'class-validator';
import { IsLimit } from '../input-validators.js';
import { CompanyInput } from '../companies/company-inputs.js';
import type { Environment } from '../companies/company.js';
import { IsCompanyId, IsEnvironment } from '../companies/company-validators.js';
import { IsEventType, IsPhoneNumber, IsReturnUrl } from './transaction-validators.js';
import type { TransactionKind } from './transaction.js';
import { TRANSACTION_KINDS } from './transaction.js';

const AMOUNT = {
  message:
    'amount must be a number above 0 and at most 1000000000000, in the unit of the merchant, such as 1500 or 12.5',
};

const REFERENCE = { message: '$property must be a string of 1 to 256 characters' };

/** A payment to create: the body of `POST /emulator/checkout-invoices`, `/emulator/stk-pushes` and `/emulator/payouts`. */
export class NewPayment {
  /** The amount, above 0 and at most 1,000,000,000,000, which the emulator sends unchanged as a JSON number. */
  @IsNumber({ allowInfinity: false, allowNaN: false }, AMOUNT)
  @Min(Number.MIN_VALUE, AMOUNT)
  @Max(1_000_000_000_000, AMOUNT)
  amount!: number;

  /** The client's own reference, 1 to 256 characters. */
  @Length(1, 256, REFERENCE)
  externalReference!: string;

  /** The account reference, 1 to 256 characters. Default: the external reference. */
  @IsOptional()
  @Length(1, 256, REFERENCE)
  accountReference?: string | undefined;

  /** The `metadata` of the event. Default: an empty object. */
  @IsOptional()
  @IsObject({ message: 'metadata must be a JSON object' })
  metadata?: Record<string, unknown> | undefined;

  /** URL that the checkout page links back to: `http://` or `https://`, at most 2048 characters. */
  @IsOptional()
  @IsReturnUrl()
  returnUrl?: string | undefined;

  /** The number of the phone that shows an STK push: 7 to 15 digits; spaces and hyphens are allowed. */
  @IsOptional()
  @IsPhoneNumber()
  phoneNumber?: string | undefined;
}

/** A payment to create for a company in an environment. */
export class NewCompanyPayment extends NewPayment {
  /** Id of the company. Default: the company that the emulator started with. */
  @IsOptional()
  @IsCompanyId()
  companyId?: string | undefined;

  /** The environment. Default: `sandbox`; over HTTP, the environment of the called host. */
  @IsOptional()
  @IsEnvironment()
  environment?: Environment | undefined;
}

/** A transaction to create. */
export class NewTransaction extends NewCompanyPayment {
  @IsIn(TRANSACTION_KINDS, { message: `kind must be one of ${TRANSACTION_KINDS.join(', ')}` })
  kind!: TransactionKind;
}

/** An event to send without a transaction. */
export class NewEvent extends CompanyInput {
  /**
   * The environment. Both environments have the same webhook. Default: `sandbox`; over HTTP, the environment of the
   * called host.
   */
  @IsOptional()
  @IsEnvironment()
  environment?: Environment | undefined;

  /** Any event type, including types that the service does not document: 1 to 128 visible ASCII characters. */
  @IsEventType()
  eventType!: string;

  /** The `data` of the event. Default: an empty object. */
  @IsOptional()
  @IsObject({ message: 'data must be a JSON object' })
  data?: Record<string, unknown> | undefined;

  /** The `metadata` of the event. Default: an empty object. */
  @IsOptional()
  @IsObject({ message: 'metadata must be a JSON object' })
  metadata?: Record<string, unknown> | undefined;
}

const DELAY = {
  message: 'delayMs must be a whole number of milliseconds from 1 to 604800000',
};

/** The input of a completion at a later time. */
export class LaterCompletion {
  /** Milliseconds until the completion, by the emulator's clock; 1 to 604,800,000 (seven days). */
  @IsInt(DELAY)
  @Min(1, DELAY)
  @Max(604_800_000, DELAY)
  delayMs!: number;
}

/** Selects the payments of the calling company: the query of `GET /emulator/payments`. */
export class PaymentQuery {
  /** The client's own reference, 1 to 256 characters. */
  @Length(1, 256, REFERENCE)
  externalReference!: string;
}

/** Selects the transactions that match all given fields. */
export class TransactionFilter {
  /** Id of the company. Default: all companies. */
  @IsOptional()
  @IsCompanyId()
  companyId?: string | undefined;

  @IsOptional()
  @IsIn(TRANSACTION_KINDS, { message: `kind must be one of ${TRANSACTION_KINDS.join(', ')}` })
  kind?: TransactionKind | undefined;

  /** The client's own reference. Only equal references match. */
  @IsOptional()
  @IsString({ message: 'externalReference must be a string' })
  externalReference?: string | undefined;

  /**
   * True selects transactions that are neither complete nor failed. False selects all other transactions. Default: all.
   */
  @IsOptional()
  @Transform(
    ({ value }: { value: unknown }) => ({ true: true, false: false })[String(value)] ?? value,
  )
  @IsBoolean({ message: 'open must be true or false' })
  open?: boolean | undefined;

  /** Maximum number of transactions, 1 to 10,000. The newest transactions are returned. Default: all. */
  @IsLimit('transactions', 10_000)
  limit?: number | undefined;
}
