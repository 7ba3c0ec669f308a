import { ModuleLogger, ThrottledLog } from '../../errors/module-log.js';
import type { ThrottledLogRuntime } from '../../errors/module-log.js';
import { describeError } from '../../errors/payments-error.js';
import { optionsInvalid, shown } from '../../errors/option-checks.js';
import { isObject } from '../../events/payment-event.js';
import type { PaymentEvent } from '../../events/payment-event.js';
import type { EventSummary, StoredSummary } from '../store/stored-event.js';

/** The option `summary`; `null` stores nothing. */
export type SummaryOption = ((event: PaymentEvent) => EventSummary | null | undefined) | null;

const LENGTHS = { reference: 200, amount: 40, currency: 10 };

/** The default of the option `summary`: the fields that the service's contract shows. */
export function defaultSummary({ data }: PaymentEvent): EventSummary {
  const { externalReference, accountReference, amount, currency } = data;
  const reference = isText(externalReference) ? externalReference : accountReference;
  return { reference, amount, currency } as EventSummary;
}

/** @throws PaymentsError `options_invalid`. */
export function resolveSummaryOption(summary: unknown): SummaryOption {
  if (summary === undefined) return defaultSummary;
  if (summary === null || typeof summary === 'function') return summary as SummaryOption;
  throw optionsInvalid(
    `"summary" must be a function of an event, or null to store no summary; it is ${shown(summary)}.`,
  );
}

/** Summarizes events. An error of the application's function leaves the summary out, and affects nothing else. */
export class EventSummaries {
  readonly #log: ThrottledLog;

  constructor(
    private readonly option: SummaryOption,
    runtime: ThrottledLogRuntime,
  ) {
    this.#log = new ThrottledLog(new ModuleLogger('PaymentInbox'), runtime);
  }

  /** The summary of an event; `null` if there is none. Never throws. */
  of(event: PaymentEvent): StoredSummary | null {
    if (this.option === null) return null;
    try {
      // A copy: the function may change its event, but not the keys under which the event is stored.
      const summary = this.option(this.option === defaultSummary ? event : structuredClone(event));
      if (isObject(summary)) return this.#stored(summary);
      if (summary !== null && summary !== undefined) this.#failed(`it returned ${shown(summary)}`);
    } catch (error) {
      this.#failed(describeError(error));
    }
    return null;
  }

  #stored(summary: EventSummary & { then?: unknown }): StoredSummary | null {
    if (typeof summary.then === 'function') {
      // Without a listener, a rejection would end the process.
      Promise.resolve(summary).catch(() => {});
      this.#failed('it returned a promise');
      return null;
    }
    const { reference, amount, currency } = summary;
    const isNumber = typeof amount === 'number' && Number.isFinite(amount);
    return {
      reference: bounded('reference', reference),
      amount: bounded('amount', isNumber ? String(amount) : amount),
      currency: bounded('currency', currency),
    };
  }

  #failed(why: string): void {
    this.#log.warn(
      'summary',
      () => `The option "summary" failed, so lists show an event without its summary: ${why}.`,
    );
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** The start of a text, without a half of a character at its end; `null` for another value or an empty text. */
function bounded(field: keyof typeof LENGTHS, value: unknown): string | null {
  return isText(value)
    ? value.slice(0, LENGTHS[field]).toWellFormed().replaceAll('\0', '\uFFFD')
    : null;
}
