import 'reflect-metadata';
import { Transform, Type } from 'class-transformer';
import {
  IsBoolean,
  IsIn,
  IsInt,
  IsNumber,
  IsObject,
  IsOptional,
  Length,
  Max,
  Min,
} from 'class-validator';
import type { Environment } from '../companies/company.record.js';
import { IsCompanyId, IsEnvironment } from '../companies/company.rules.js';
import { IsEventType, IsPhoneNumber, IsReturnUrl } from './transaction.rules.js';
import type { TransactionKind } from './transaction.record.js';
import { TRANSACTION_KINDS } from './transaction.record.js';

const AMOUNT = {
  message:
    'amount must be a number above 0 and at most 1000000000000, in the unit the shop uses, such as 1500 or 12.5',
};

/** What a payment is asked for with: the body of `POST /emulator/checkout-invoices`. */
export class NewPayment {
  /** Above 0, at most 1,000,000,000,000; kept and sent as the JSON number it is. */
  @IsNumber({ allowInfinity: false, allowNaN: false }, AMOUNT)
  @Min(Number.MIN_VALUE, AMOUNT)
  @Max(1_000_000_000_000, AMOUNT)
  amount!: number;

  /** The client's own reference, 1 to 256 characters. */
  @Length(1, 256, { message: 'externalReference must be a string of 1 to 256 characters' })
  externalReference!: string;

  /** 1 to 256 characters. Default: the external reference. */
  @IsOptional()
  @Length(1, 256, { message: 'accountReference must be a string of 1 to 256 characters' })
  accountReference?: string | undefined;

  /** Goes into the event's `metadata`. Default: an empty object. */
  @IsOptional()
  @IsObject({ message: 'metadata must be a JSON object' })
  metadata?: Record<string, unknown> | undefined;

  /** Where the checkout page leads back to: `http://` or `https://`, at most 2048 characters. */
  @IsOptional()
  @IsReturnUrl()
  returnUrl?: string | undefined;

  /** The phone an STK push is shown on: 7 to 15 digits, spaces and hyphens between them allowed. */
  @IsOptional()
  @IsPhoneNumber()
  phoneNumber?: string | undefined;
}

/** A payment of a company, in an environment. */
export class NewCompanyPayment extends NewPayment {
  /** Default: the company the emulator started with. */
  @IsOptional()
  @IsCompanyId()
  companyId?: string | undefined;

  /** Default: `sandbox`; over HTTP, that of the host that was called. */
  @IsOptional()
  @IsEnvironment()
  environment?: Environment | undefined;
}

/** A transaction to create. */
export class NewTransaction extends NewCompanyPayment {
  @IsIn(TRANSACTION_KINDS, { message: `kind must be one of ${TRANSACTION_KINDS.join(', ')}` })
  kind!: TransactionKind;
}

/** An event to send that no transaction brought about. */
export class NewEvent {
  /** Default: the company the emulator started with. */
  @IsOptional()
  @IsCompanyId()
  companyId?: string | undefined;

  /** Default: `sandbox`. A company's webhook is the same in both. */
  @IsOptional()
  @IsEnvironment()
  environment?: Environment | undefined;

  /** Any type, the ones the service's page does not show included: 1 to 128 visible ASCII characters. */
  @IsEventType()
  eventType!: string;

  /** Default: an empty object. */
  @IsOptional()
  @IsObject({ message: 'data must be a JSON object' })
  data?: Record<string, unknown> | undefined;

  /** Default: an empty object. */
  @IsOptional()
  @IsObject({ message: 'metadata must be a JSON object' })
  metadata?: Record<string, unknown> | undefined;
}

const TRANSACTION_LIMIT = {
  message: 'limit must be a whole number of transactions from 1 to 10000',
};

/** Which transactions to show. Everything given must match. */
export class TransactionFilter {
  /** Default: every company's. */
  @IsOptional()
  @IsCompanyId()
  companyId?: string | undefined;

  @IsOptional()
  @IsIn(TRANSACTION_KINDS, { message: `kind must be one of ${TRANSACTION_KINDS.join(', ')}` })
  kind?: TransactionKind | undefined;

  /** True: neither complete nor failed. False: one of them. Default: both. */
  @IsOptional()
  @Transform(
    ({ value }: { value: unknown }) => ({ true: true, false: false })[String(value)] ?? value,
  )
  @IsBoolean({ message: 'open must be true or false' })
  open?: boolean | undefined;

  /** At most so many, the newest. 1 to 10,000. Default: all. */
  @IsOptional()
  @Type(() => Number)
  @IsInt(TRANSACTION_LIMIT)
  @Min(1, TRANSACTION_LIMIT)
  @Max(10_000, TRANSACTION_LIMIT)
  limit?: number | undefined;
}
