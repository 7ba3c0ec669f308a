import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { SettleResult } from '../store/inbox-store.js';
import { isAboutValues, PostgresInboxError } from './connection/database-failure.js';
import type { Ended } from './sql/settle.js';

/** What one statement settles at most. */
const MAX_GROUP = 500;
/** How soon a delivery is tried again that another transaction held. */
const RETRY_MS = 10;

interface Waiting {
  readonly ended: Ended;
  readonly since: number;
  readonly resolve: (settlement: SettleResult) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit of settlements: those of one turn of the event loop are settled together, at once if no statement runs,
 * and otherwise with all that come until it has ended. So they share a wait for the disk.
 */
export class SettleQueue {
  #waiting: Waiting[] = [];
  #settling = false;

  constructor(
    /** Resolves in the order of its argument; `null`: another transaction holds the delivery. */
    private readonly settleAll: (all: readonly Ended[]) => Promise<(SettleResult | null)[]>,
    /** How long a delivery may be held by another transaction. */
    private readonly timeoutMs: number,
    private readonly runtime: Pick<PaymentsRuntime, 'monotonic' | 'schedule'>,
  ) {}

  /** Resolves once it is committed. */
  settle(ended: Ended): Promise<SettleResult> {
    return new Promise((resolve, reject) => {
      this.#add({ ended, since: this.runtime.monotonic(), resolve, reject });
    });
  }

  #add(one: Waiting): void {
    this.#waiting.push(one);
    if (this.#settling) return;
    this.#settling = true;
    setImmediate(() => void this.#run());
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    while (this.#waiting.length > 0) await this.#settle(this.#waiting.splice(0, MAX_GROUP));
    this.#settling = false;
  }

  /** Never rejects. */
  async #settle(group: readonly Waiting[]): Promise<void> {
    try {
      const settlements = await this.settleAll(group.map(({ ended }) => ended));
      for (const [place, one] of group.entries()) {
        const settlement = settlements[place];
        if (settlement) one.resolve(settlement);
        else this.#again(one);
      }
    } catch (error) {
      if (group.length === 1 || !isAboutValues(error))
        for (const { reject } of group) reject(error);
      // One of them cannot be stored, which must not fail the others.
      else for (const one of group) await this.#settle([one]);
    }
  }

  #again(one: Waiting): void {
    if (this.runtime.monotonic() - one.since < this.timeoutMs) {
      this.runtime.schedule(RETRY_MS, () => this.#add(one));
      return;
    }
    const { id, handler } = one.ended.lease;
    one.reject(
      new PostgresInboxError(
        `The delivery of event ${id} to ${handler} could not be settled within ${this.timeoutMs} ms, because another ` +
          'transaction holds its row.',
        null,
      ),
    );
  }
}
