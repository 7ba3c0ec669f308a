import 'reflect-metadata';
import { Type } from 'class-transformer';
import { IsIn, IsInt, IsOptional, IsString, Max, Min } from 'class-validator';
import { IsCompanyId } from '../companies/company.rules.js';
import type { DeliveryState } from './delivery.record.js';
import { DELIVERY_STATES } from './delivery.record.js';

const LIMIT = { message: 'limit must be a whole number of deliveries from 1 to 10000' };

/** Which attempts of the delivery log to show. Everything given must match. */
export class DeliveryFilter {
  /** Default: every company's. */
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

  /** At most so many, the newest. 1 to 10,000. Default: all the log holds. */
  @IsOptional()
  @Type(() => Number)
  @IsInt(LIMIT)
  @Min(1, LIMIT)
  @Max(10_000, LIMIT)
  limit?: number | undefined;
}
