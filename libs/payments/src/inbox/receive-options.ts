import { integerOption, optionsInvalid } from '../payments.validation.js';

/** How deliveries are received. Every field has a default. */
export interface ReceiveOptions {
  /**
   * Event types that are handled once per transaction: a second event of the same company, type and
   * `data.transactionId` is a duplicate, even if its id is another. It is answered 200 and not handled, noted on the
   * first event (`StoredEvent.repeats`) and logged. Exact types, without `*`. An event of another type, or without a
   * transaction id, is a duplicate only if its id is known. Default `['transaction.completed']`; `[]` for none.
   */
  oncePerTransaction?: readonly string[];
  /**
   * Milliseconds from a delivery's arrival until it is answered 503 at the latest. Under the sender's 30 s.
   * 100 to 29,000. Default 25,000.
   */
  deadlineMs?: number;
}

/** {@link ReceiveOptions}, complete. */
export interface ResolvedReceiveOptions {
  readonly oncePerTransaction: ReadonlySet<string>;
  readonly deadlineMs: number;
}

/** @throws PaymentsError `options_invalid`. */
export function resolveReceiveOptions(options: ReceiveOptions): ResolvedReceiveOptions {
  const {
    oncePerTransaction: types = ['transaction.completed'],
  }: { oncePerTransaction?: unknown } = options;
  if (!Array.isArray(types) || !types.every(isExactType)) {
    throw optionsInvalid(
      '"oncePerTransaction" must be a list of exact event types, such as "transaction.completed", without "*"; ' +
        'use [] for none.',
    );
  }
  return Object.freeze({
    oncePerTransaction: new Set(types),
    deadlineMs: integerOption('deadlineMs', options.deadlineMs, {
      default: 25_000,
      min: 100,
      max: 29_000,
      unit: 'milliseconds',
    }),
  });
}

function isExactType(type: unknown): type is string {
  return typeof type === 'string' && /^[^*\p{Cc}]{1,255}$/u.test(type);
}
