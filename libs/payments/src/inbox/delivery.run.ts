import { Logger } from '@nestjs/common';
import { parseEnvelope } from '../events/envelope.js';
import type { EventDispatcher } from '../events/event.dispatcher.js';
import { describeThrown, framesOf, isUnrecoverable } from '../events/thrown.js';
import { PaymentsError } from '../payments.errors.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import type { ClaimedDelivery, InboxStore, Lease } from './inbox-store.js';
import { RunCommit } from './run.commit.js';
import { RunContext } from './run.context.js';
import type { AttemptOutcome, Settlements } from './settlements.js';
import type { StoredBodies } from './stored-bodies.js';
import { backoffMs } from './worker-options.js';
import type { ResolvedWorkerOptions } from './worker-options.js';

/** What a run needs of the inbox. */
export interface RunStations {
  readonly store: InboxStore;
  readonly options: ResolvedWorkerOptions;
  readonly runtime: PaymentsRuntime;
  readonly dispatcher: EventDispatcher;
  readonly settlements: Settlements;
  readonly bodies: StoredBodies;
}

/** To be tried again or dead, as the store has it; or given back, the attempt not charged. */
type Failure = { readonly error: string; readonly retryInMs: number | null } | 'release';

/** One attempt of one claimed delivery: runs its handler, keeps its lease meanwhile, and settles it. */
export class DeliveryRun {
  readonly #logger = new Logger('PaymentInbox');
  readonly #abort = new AbortController();
  #stopHeartbeat: () => void = () => {};
  #abandoned = false;
  /** By this process's own count: a hint for how long to try. The store has the last word on the lease. */
  #leaseEndsAt: number;
  /** Resolves when the delivery is settled, or could not be, with how the attempt ended. Never rejects. */
  readonly ended: Promise<AttemptOutcome>;

  constructor(
    private readonly delivery: ClaimedDelivery,
    private readonly stations: RunStations,
    /** Called once, when the handler has ended and its delivery is about to be settled. */
    private readonly onHandled: () => void,
  ) {
    this.#leaseEndsAt = stations.runtime.monotonic() + stations.options.leaseMs;
    this.ended = this.#run();
  }

  /** Tells the handler to stop. If it fails now, no attempt is charged; its lease is not prolonged any more. */
  abandon(): void {
    this.#abandoned = true;
    this.#stopHeartbeat();
    this.#abortWith('The application closes and waits no longer for this handler.');
  }

  /** Gives the delivery of a handler that does not end back to others. */
  async giveBack(): Promise<void> {
    await this.stations.store.release(this.delivery);
  }

  async #run(): Promise<AttemptOutcome> {
    const { delivery, stations } = this;
    const { maxAttempts } = stations.options;
    const commit = new RunCommit(stations.store, delivery);
    let failure: { thrown: unknown } | null = null;
    this.#startHeartbeat();
    try {
      if (delivery.attempt > maxAttempts) throw outOfAttempts(delivery, maxAttempts);
      const body = await stations.bodies.decode(delivery.raw, delivery);
      const context = new RunContext(delivery, body, this.#abort, commit.commit);
      await stations.dispatcher.dispatch(parseEnvelope(body), context);
    } catch (thrown) {
      failure = { thrown };
    }
    try {
      await commit.close();
    } catch (thrown) {
      failure ??= { thrown };
    }
    this.#stopHeartbeat();
    this.onHandled();
    if (commit.done) this.#logAfterCommit(failure);
    else await this.#settle(failure ? this.#failure(failure.thrown) : null);
    const outcome = failure && !commit.done ? 'failed' : 'succeeded';
    stations.settlements.report(delivery, outcome);
    return outcome;
  }

  #logAfterCommit(failure: { thrown: unknown } | null): void {
    if (failure === null) return;
    const why = `${describeThrown(failure.thrown)}${framesOf(failure.thrown)}`;
    this.#logger.error(
      `Delivery ${name(this.delivery)} is done, but its handler failed after its commit. ${why}`,
    );
  }

  /** Settles the delivery; while the store is down, tries again for as long as the lease can last. */
  async #settle(failure: Failure | null): Promise<void> {
    const { delivery } = this;
    const { store, runtime } = this.stations;
    for (let waitMs = 100; ; waitMs = Math.min(2 * waitMs, 5000)) {
      try {
        if (await settle(store, delivery, failure)) return;
        this.#logger.warn(
          `Delivery ${name(delivery)} lost its lease while it ran, so what it did is not recorded and it runs ` +
            'again. Raise "worker.leaseMs", or look for what blocks the event loop.',
        );
        return;
      } catch (error) {
        if (this.#abandoned || runtime.monotonic() + waitMs >= this.#leaseEndsAt) {
          this.#logger.error(
            `Delivery ${name(delivery)} could not be settled: ${describeThrown(error)}. It runs again when its ` +
              'lease ends.',
          );
          return;
        }
        await new Promise<void>((resolve) => runtime.schedule(waitMs, resolve));
      }
    }
  }

  /** What is to become of a delivery whose handler failed. */
  #failure(thrown: unknown): Failure {
    const { attempt } = this.delivery;
    const { options, runtime } = this.stations;
    const error = describeThrown(thrown);
    const what = `${name(this.delivery)} failed (attempt ${attempt} of ${options.maxAttempts})`;
    if (this.#abandoned) {
      this.#logger.warn(`Delivery ${what} as the application closes; it does not count. ${error}`);
      return 'release';
    }
    const traced = `${error}${framesOf(thrown)}`;
    if (attempt >= options.maxAttempts || isUnrecoverable(thrown)) {
      this.#logger.error(`Delivery ${what} and is dead; it is kept and can be redriven. ${traced}`);
      return { error, retryInMs: null };
    }
    const retryInMs = backoffMs(attempt, options, runtime.random());
    // The stack is the same each time: the first line and the last have it.
    const why = attempt === 1 ? traced : error;
    this.#logger.warn(`Delivery ${what}; next attempt in ${retryInMs} ms. ${why}`);
    return { error, retryInMs };
  }

  #startHeartbeat(): void {
    const { store, options, runtime } = this.stations;
    const { leaseMs } = options;
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
        if (held) this.#leaseEndsAt = askedAt + leaseMs;
      } catch {
        // The store is down: what it last said holds until the lease it gave is over.
        held = runtime.monotonic() < this.#leaseEndsAt;
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

function settle(store: InboxStore, lease: Lease, failure: Failure | null): Promise<boolean> {
  if (failure === null) return store.complete(lease);
  return failure === 'release' ? store.release(lease) : store.fail(lease, failure);
}

/**
 * Claimed once more than its attempts: each of them counted as it began, so the last one never ended; or there
 * were more of them to have when it failed.
 */
function outOfAttempts(
  { attempt, takenOver }: ClaimedDelivery,
  maxAttempts: number,
): PaymentsError {
  const message = takenOver
    ? `The last of ${maxAttempts} attempts ended without a result: its process died, or it lost its lease.`
    : `It was begun ${attempt - 1} times, and "worker.maxAttempts" is ${maxAttempts} now.`;
  return new PaymentsError('unrecoverable', message);
}

function name({ company, id, handler }: ClaimedDelivery): string {
  return `of event ${id} (company ${company}) to ${handler}`;
}
