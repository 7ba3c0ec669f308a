/**
 * What lists show and searches find of an event, besides its transaction: the result of the option `summary`. Fields
 * that are missing, or of another type, are not stored.
 */
export interface EventSummary {
  /** The application's name of the payment, for example an order number. Cut to 200 characters. */
  readonly reference?: string | null;
  /** The amount in units of the currency, for example `350` or `'350.00'`. Cut to 40 characters. */
  readonly amount?: string | number | null;
  /** The currency, for example `KES`. Cut to 10 characters. */
  readonly currency?: string | null;
}

/** An {@link EventSummary} as stored: `null` for what is not known. */
export interface StoredSummary {
  readonly reference: string | null;
  readonly amount: string | null;
  readonly currency: string | null;
}

/** The summary of an event about which nothing is known. */
export const NO_SUMMARY: StoredSummary = Object.freeze({
  reference: null,
  amount: null,
  currency: null,
});

/** Deliveries to one handler that failed with the same error, as a store counts them. */
export interface FailureCount {
  readonly handler: string;
  /** The last error of the deliveries, word for word. */
  readonly error: string;
  /** `dead`, or `retrying`: pending or running, after an attempt that failed or was lost. */
  readonly state: 'dead' | 'retrying';
  readonly count: number;
  /** When the last attempts of these deliveries ended: the first and the last of these times. */
  readonly oldestAt: Date;
  readonly newestAt: Date;
  /** The event of the delivery that was received last. */
  readonly company: string;
  readonly eventId: string;
}

/** How many failed deliveries {@link InboxStore.failures} reads: those of the newest events. */
export const MAX_FAILED = 10_000;
