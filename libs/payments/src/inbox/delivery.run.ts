import { Logger } from '@nestjs/common';
import { parseEnvelope } from '../events/envelope.js';
import type { EventDispatcher } from '../events/event.dispatcher.js';
import { describeThrown, framesOf, isUnrecoverable } from '../events/thrown.js';
import { PaymentsError } from '../payments.errors.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import type { ClaimedDelivery, InboxStore } from './inbox.store.js';
import type { Settlements } from './settlements.js';
import { backoffMs } from './worker.options.js';
import type { ResolvedWorkerOptions } from './worker.options.js';

/** What a run needs of the inbox. */
export interface RunStations {
  readonly store: InboxStore;
  readonly options: ResolvedWorkerOptions;
  readonly runtime: PaymentsRuntime;
  readonly dispatcher: EventDispatcher;
  readonly settlements: Settlements;
}

/** One attempt of one claimed delivery: runs its handler, keeps its lease meanwhile, and settles it. */
export class DeliveryRun {
  readonly #logger = new Logger('PaymentInbox');
  readonly #abort = new AbortController();
  #stopHeartbeat: () => void = () => {};
  #abandoned = false;
  /** Resolves when the delivery is settled, or could not be. Never rejects. */
  readonly ended: Promise<void>;

  constructor(
    private readonly delivery: ClaimedDelivery,
    private readonly stations: RunStations,
  ) {
    this.ended = this.#run();
  }

  /** Tells the handler to stop. If it fails now, no attempt is charged; its lease is not prolonged any more. */
  abandon(): void {
    this.#abandoned = true;
    this.#stopHeartbeat();
    this.#abortWith('The application closes and waits no longer for this handler.');
  }

  async #run(): Promise<void> {
    const { delivery, stations } = this;
    const { maxAttempts } = stations.options;
    let failure: { thrown: unknown } | null = null;
    this.#startHeartbeat();
    try {
      if (delivery.attempt > maxAttempts) throw endedWithoutResult(maxAttempts);
      const { company, handler, attempt, receivedAt } = delivery;
      const raw = Buffer.from(delivery.raw);
      const context = { company, handler, attempt, receivedAt, raw, signal: this.#abort.signal };
      await stations.dispatcher.dispatch(parseEnvelope(raw), Object.freeze(context));
    } catch (thrown) {
      failure = { thrown };
    } finally {
      this.#stopHeartbeat();
    }
    await this.#settle(failure);
    stations.settlements.report(delivery, failure ? 'failed' : 'succeeded');
  }

  async #settle(failure: { thrown: unknown } | null): Promise<void> {
    const { delivery } = this;
    try {
      const settled = failure
        ? await this.#fail(failure.thrown)
        : await this.stations.store.complete(delivery);
      if (settled) return;
      this.#logger.warn(
        `Delivery ${name(delivery)} lost its lease while it ran, so what it did is not recorded and it runs ` +
          'again. Raise "worker.leaseMs", or look for what blocks the event loop.',
      );
    } catch (error) {
      this.#logger.error(
        `Delivery ${name(delivery)} could not be settled: ${describeThrown(error)}. It runs again when its ` +
          'lease ends.',
      );
    }
  }

  async #fail(thrown: unknown): Promise<boolean> {
    const { delivery } = this;
    const { store, options, runtime } = this.stations;
    const { attempt } = delivery;
    const error = describeThrown(thrown);
    const what = `${name(delivery)} failed (attempt ${attempt} of ${options.maxAttempts})`;
    if (this.#abandoned) {
      this.#logger.warn(`Delivery ${what} as the application closes; it does not count. ${error}`);
      return store.release(delivery);
    }
    const why = `${error}${framesOf(thrown)}`;
    if (attempt >= options.maxAttempts || isUnrecoverable(thrown)) {
      this.#logger.error(`Delivery ${what} and is dead; it is kept and can be redriven. ${why}`);
      return store.fail(delivery, { error, retryInMs: null });
    }
    const retryInMs = backoffMs(attempt, options, runtime.random());
    this.#logger.warn(`Delivery ${what}; next attempt in ${retryInMs} ms at the latest. ${why}`);
    return store.fail(delivery, { error, retryInMs });
  }

  #startHeartbeat(): void {
    const { store, options, runtime } = this.stations;
    const { leaseMs } = options;
    let heldAt = runtime.monotonic();
    let stopped = false;
    let cancel = () => {};
    const next = () => {
      cancel = runtime.schedule(leaseMs / 3, () => void beat());
    };
    const beat = async (): Promise<void> => {
      const askedAt = runtime.monotonic();
      let held = true;
      try {
        held = await store.extend(this.delivery, leaseMs);
        if (held) heldAt = askedAt;
      } catch {
        // The store is down: what it last said holds until the lease it gave is over.
        held = runtime.monotonic() < heldAt + leaseMs;
      }
      if (stopped) return;
      if (held) next();
      else this.#abortWith('The lease of this delivery was lost: it may be running elsewhere.');
    };
    this.#stopHeartbeat = () => {
      stopped = true;
      cancel();
    };
    next();
  }

  #abortWith(message: string): void {
    this.#abort.abort(new DOMException(message, 'AbortError'));
  }
}

/** Claimed once more than its attempts: each of them counted as it began, so the last one never ended. */
function endedWithoutResult(maxAttempts: number): PaymentsError {
  return new PaymentsError(
    'unrecoverable',
    `The last of ${maxAttempts} attempts ended without a result: its process died, or it lost its lease.`,
  );
}

function name({ company, id, handler }: ClaimedDelivery): string {
  return `of event ${id} (company ${company}) to ${handler}`;
}
