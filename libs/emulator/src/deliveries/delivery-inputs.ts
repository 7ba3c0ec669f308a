import 'reflect-metadata';
import { Type } from 'class-transformer';
import { IsIn, IsInt, IsOptional, IsString, Max, MaxLength, Min } from 'class-validator';
import { IsCompanyId } from '../companies/company-validators.js';
import type { DeliveryState } from './delivery-record.js';
import { DELIVERY_STATES } from './delivery-record.js';

const LIMIT = { message: 'limit must be a whole number of deliveries from 1 to 10000' };

/** Selects attempts of the delivery log. All given fields must match. */
export class DeliveryFilter {
  /** Id of the company. Default: all companies. */
  @IsOptional()
  @IsCompanyId()
  companyId?: string | undefined;

  @IsOptional()
  @IsString({ message: 'eventId must be a string' })
  eventId?: string | undefined;

  @IsOptional()
  @IsString({ message: 'eventType must be a string' })
  eventType?: string | undefined;

  @IsOptional()
  @IsString({ message: 'transactionId must be a string' })
  transactionId?: string | undefined;

  @IsOptional()
  @IsIn(DELIVERY_STATES, { message: `state must be one of ${DELIVERY_STATES.join(', ')}` })
  state?: DeliveryState | undefined;

  /** Maximum number of attempts, 1 to 10,000. The newest attempts are returned. Default: all. */
  @IsOptional()
  @Type(() => Number)
  @IsInt(LIMIT)
  @Min(1, LIMIT)
  @Max(10_000, LIMIT)
  limit?: number | undefined;
}

const PAGE_LIMIT = { message: 'limit must be a whole number of deliveries from 1 to 200' };

/** Selects attempts for a page of the delivery log. All given fields must match. */
export class DeliverySearch {
  /** Id of the company. Default: all companies. */
  @IsOptional()
  @IsCompanyId()
  companyId?: string | undefined;

  @IsOptional()
  @IsIn(DELIVERY_STATES, { message: `state must be one of ${DELIVERY_STATES.join(', ')}` })
  state?: DeliveryState | undefined;

  /** Text that the transaction id, the reference, the event id or the event type contains; case-insensitive. */
  @IsOptional()
  @IsString({ message: 'search must be text' })
  @MaxLength(256, { message: 'search must be at most 256 characters' })
  search?: string | undefined;

  /** Id of an attempt; only older attempts match. The id of the last attempt of a page selects the next page. */
  @IsOptional()
  @IsString({ message: "before must be a delivery's id" })
  before?: string | undefined;

  /** Maximum number of attempts, 1 to 200. Default: 50. */
  @IsOptional()
  @Type(() => Number)
  @IsInt(PAGE_LIMIT)
  @Min(1, PAGE_LIMIT)
  @Max(200, PAGE_LIMIT)
  limit?: number | undefined;
}
