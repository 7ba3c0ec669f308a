import { integerOption, optionsInvalid } from '../payments.validation.js';

/** How deliveries are taken in. Every field has a default. */
export interface ReceiveOptions {
  /**
   * What makes two events one: the event's id (`event`, the default), or its `eventType` together with
   * `data.transactionId` (`transaction`). The service allows both. An event without a transaction id is known
   * by its own id.
   */
  dedupeBy?: 'event' | 'transaction';
  /**
   * Milliseconds from a delivery's arrival until it is answered 503 at the latest. Under the sender's 30 s.
   * 100 to 29,000. Default 25,000.
   */
  deadlineMs?: number;
}

/** {@link ReceiveOptions}, complete. */
export type ResolvedReceiveOptions = Readonly<Required<ReceiveOptions>>;

/** @throws PaymentsError `options_invalid`. */
export function resolveReceiveOptions(options: ReceiveOptions): ResolvedReceiveOptions {
  const { dedupeBy = 'event' } = options;
  if (dedupeBy !== 'event' && dedupeBy !== 'transaction') {
    throw optionsInvalid(`"dedupeBy" must be 'event' or 'transaction'; leave it out for 'event'.`);
  }
  return Object.freeze({
    dedupeBy,
    deadlineMs: integerOption('deadlineMs', options.deadlineMs, {
      default: 25_000,
      min: 100,
      max: 29_000,
      unit: 'milliseconds',
    }),
  });
}
