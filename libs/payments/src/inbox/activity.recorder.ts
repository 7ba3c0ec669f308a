import { Logger } from '@nestjs/common';
import { describeThrown } from '../events/thrown.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import { addCounts, bucketOf, noCounts } from './activity.minutes.js';
import type { InboxStore } from './store.contract.js';

/** How long counts are gathered before they are recorded. */
const GATHER_MS = 5000;
/** How long a closing application waits for its last counts to be recorded. */
const LAST_MS = 1000;

/**
 * Counts what this process does, and adds it to the store's minutes every few seconds, so that counting costs a
 * receive or a settlement nothing. The counts are for plots: a process that crashes loses those of its last
 * seconds, and where a recording fails without saying whether it was done, it may be counted twice. A failure
 * disturbs nobody: the counts are kept, and recorded when that works again.
 */
export class ActivityRecorder {
  readonly #logger = new Logger('PaymentInbox');
  #counts = noCounts();
  #counted = false;
  /** Stops the timer; `null` where none runs. */
  #cancel: (() => void) | null = null;
  /** Resolves when what is being recorded is. */
  #recorded: Promise<void> = Promise.resolve();
  #failing = false;
  #closed = false;

  constructor(
    private readonly store: Pick<InboxStore, 'record' | 'capabilities'>,
    private readonly runtime: PaymentsRuntime,
  ) {}

  received(events: number): void {
    if (events === 0) return;
    this.#counts.received += events;
    this.#changed();
  }

  /** `tookMs` from its receipt; `null` where that is not known. */
  handled(tookMs: number | null): void {
    this.#counts.handled += 1;
    if (tookMs !== null) this.#counts.handledWithin[bucketOf(tookMs)]! += 1;
    this.#changed();
  }

  failed(dead: boolean): void {
    this.#counts.failed += 1;
    if (dead) this.#counts.dead += 1;
    this.#changed();
  }

  /** Records what was counted until now, unless recording fails anyway. Never rejects. */
  async flush(): Promise<void> {
    if (!this.#failing) await this.#record();
  }

  /** Records the last counts, as far as that is quick. */
  async close(): Promise<void> {
    this.#closed = true;
    let cancel = () => {};
    const timeUp = new Promise<void>((resolve) => {
      cancel = this.runtime.schedule(LAST_MS, resolve);
    });
    await Promise.race([this.#record(), timeUp]);
    cancel();
  }

  #changed(): void {
    const first = !this.#counted;
    this.#counted = true;
    // What is in memory itself is told at once, all of a moment together: that needs no timer.
    if (this.store.capabilities.durable) this.#plan();
    else if (first) void this.#record();
  }

  #plan(): void {
    if (this.#closed) return;
    this.#cancel ??= this.runtime.schedule(GATHER_MS, () => void this.#record());
  }

  #record(): Promise<void> {
    this.#cancel?.();
    this.#cancel = null;
    this.#recorded = this.#recorded.then(() => this.#recordOnce());
    return this.#recorded;
  }

  async #recordOnce(): Promise<void> {
    if (!this.#counted) return;
    const counts = this.#counts;
    this.#counts = noCounts();
    this.#counted = false;
    try {
      await this.store.record(counts);
      this.#failing = false;
    } catch (error) {
      this.#counts = addCounts(counts, this.#counts);
      this.#counted = true;
      this.#plan();
      if (!this.#failing) {
        this.#logger.warn(
          `The activity of the payment inbox could not be recorded: ${describeThrown(error)}. It is kept, and ` +
            'recorded when that works again.',
        );
      }
      this.#failing = true;
    }
  }
}
