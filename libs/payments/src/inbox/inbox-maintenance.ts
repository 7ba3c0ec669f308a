import { Inject, Injectable, Logger } from '@nestjs/common';
import { describeThrown } from '../events/thrown.js';
import { PAYMENTS_RUNTIME } from '../payments.runtime.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import { INBOX_STORE, WORKER_OPTIONS } from './inbox-tokens.js';
import type { InboxStore } from './inbox-store.js';
import type { ResolvedWorkerOptions } from './worker-options.js';

/** Events in one batch: few enough that a receive never waits for it. */
const BATCH = 500;
/** Between two batches, so that receives and claims go between them too. */
const BETWEEN_BATCHES_MS = 20;
const BETWEEN_ROUNDS_MS = 60_000;

/** Forgets old events, a little at a time, as `keepMs` and `knowMs` say. */
@Injectable()
export class InboxPruner {
  readonly #logger = new Logger('PaymentInbox');
  #cancel: () => void = () => {};
  #round: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(WORKER_OPTIONS) private readonly options: ResolvedWorkerOptions,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
  ) {}

  start(): void {
    this.#next(BETWEEN_ROUNDS_MS);
  }

  /** Resolves once a batch under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#round;
  }

  /** Forgets one batch, now. Returns how many events it touched. */
  async prune(limit = BATCH): Promise<number> {
    const { keepMs, knowMs } = this.options;
    return this.store.prune({ bodiesMs: keepMs, tombstonesMs: knowMs, limit });
  }

  #next(ms: number): void {
    if (this.#stopped) return;
    this.#cancel = this.runtime.schedule(ms, () => {
      this.#round = this.#pruneOnce();
    });
  }

  async #pruneOnce(): Promise<void> {
    let touched = 0;
    try {
      touched = await this.prune();
    } catch (error) {
      this.#logger.warn(`Old events could not be pruned: ${describeThrown(error)}`);
    }
    this.#next(touched === BATCH ? BETWEEN_BATCHES_MS : BETWEEN_ROUNDS_MS);
  }
}
