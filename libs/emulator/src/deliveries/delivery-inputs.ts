import { IsIn, IsOptional, IsString, MaxLength } from 'class-validator';
import { IsLimit } from '../check-input.js';
import { IsCompanyId } from '../companies/company-validators.js';
import type { DeliveryState } from './delivery-record.js';
import { DELIVERY_STATES } from './delivery-record.js';

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
  @IsLimit('deliveries', 10_000)
  limit?: number | undefined;
}

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
  @IsLimit('deliveries', 200)
  limit?: number | undefined;
}
