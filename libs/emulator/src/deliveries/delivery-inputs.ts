import { IsBase64, IsIn, IsOptional, IsString, MaxLength } from 'class-validator';
import { IsLimit } from '../input-validators.js';
import type { Environment } from '../companies/company.js';
import { IsCompanyId, IsEnvironment } from '../companies/company-validators.js';
import { EmulatorInputError } from '../emulator-errors.js';
import type { DeliveryState } from './delivery-attempt.js';
import { DELIVERY_STATES } from './delivery-attempt.js';
import type { WebhookEvent } from './delivery-request.js';

/** Selects the attempts of the delivery log that match all given fields. */
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

/** A body to sign and to send unchanged. */
export class NewBody {
  /** Id of the company that the body is sent to. Default: the company that the emulator started with. */
  @IsOptional()
  @IsCompanyId()
  companyId?: string | undefined;

  /** The environment. Default: `sandbox`; over HTTP, the environment of the called host. */
  @IsOptional()
  @IsEnvironment()
  environment?: Environment | undefined;

  /** The bytes of the body, in Base64. The bytes must be a JSON object whose field `eventType` is a string. */
  @IsBase64({}, { message: 'body must be Base64' })
  body!: string;
}

/**
 * Returns the event in the bytes of a body, for the delivery log and the header `X-Webhook-Event`. Only `eventType` is
 * checked, because a test may send an invalid event.
 *
 * @throws EmulatorInputError
 */
export function eventIn(body: Uint8Array): WebhookEvent {
  let event: Partial<WebhookEvent> | null;
  try {
    event = JSON.parse(Buffer.from(body).toString('utf8')) as Partial<WebhookEvent> | null;
  } catch {
    event = null;
  }
  const { id, eventType, data } = event ?? {};
  if (typeof eventType !== 'string' || !/^[\x21-\x7e]{1,128}$/.test(eventType)) {
    throw new EmulatorInputError([
      'body must be a JSON object with the field "eventType": 1 to 128 visible ASCII characters',
    ]);
  }
  const isObject = typeof data === 'object' && data !== null;
  return {
    id: typeof id === 'string' ? id : '',
    eventType,
    timestamp: '',
    data: isObject ? data : {},
    metadata: {},
  };
}

/** Selects the attempts for a page of the delivery log: those that match all given fields. */
export class DeliverySearch {
  /** Id of the company. Default: all companies. */
  @IsOptional()
  @IsCompanyId()
  companyId?: string | undefined;

  @IsOptional()
  @IsIn(DELIVERY_STATES, { message: `state must be one of ${DELIVERY_STATES.join(', ')}` })
  state?: DeliveryState | undefined;

  /**
   * Selects attempts whose transaction id, external reference, event id or event type contains this text. Upper and
   * lower case are equal.
   */
  @IsOptional()
  @IsString({ message: 'search must be text' })
  @MaxLength(256, { message: 'search must be at most 256 characters' })
  search?: string | undefined;

  /**
   * Id of an attempt. Selects attempts that are older than this attempt. The id of the last attempt of a page selects
   * the next page.
   */
  @IsOptional()
  @IsString({ message: "before must be a delivery's id" })
  before?: string | undefined;

  /** Maximum number of attempts, 1 to 200. Default: 50. */
  @IsLimit('deliveries', 200)
  limit?: number | undefined;
}
