import { matchesPattern } from '../../libs/payments/dist/events/handler-registry.js';
import { POLL_HANDLER } from '../../libs/payments/dist/inbox/store/expectation-store.js';
import { POLLED_TYPES } from './simulated-service.ts';
import type {
  DeliverySelection,
  DeliveryState,
  IncomingEvent,
  InboxStore,
  Lease,
  SettleResult,
  StoreReceipt,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { applyAction, checkFailure, newDelivery } from './delivery-rules.ts';
import type { ModelDelivery, OperatorAction } from './delivery-rules.ts';
import type { AttemptJournal } from './attempt-journal.ts';

/**
 * The expected state of every delivery, computed from the operations that took effect. It implements the rules of the
 * contract on plain records, without any code of the package.
 */
export class DeliveryModel {
  readonly violations: string[] = [];
  readonly #deliveries = new Map<string, ModelDelivery>();
  /** Id of the first event, by company, type and transaction. */
  readonly #once = new Map<string, string>();
  /** The stale events that no operator has redriven, by company and id. */
  readonly #stale = new Map<string, IncomingEvent>();
  readonly #lastTokens = new Map<string, number>();

  readonly #store: InboxStore;
  readonly #journal: AttemptJournal;
  readonly #maxAttempts: number;
  readonly #now: () => number;

  constructor(store: InboxStore, journal: AttemptJournal, maxAttempts: number, now: () => number) {
    this.#store = store;
    this.#journal = journal;
    this.#maxAttempts = maxAttempts;
    this.#now = now;
  }

  get(company: string, id: string, handler: string): Readonly<ModelDelivery> | undefined {
    return this.#deliveries.get(`${company}/${id}/${handler}`);
  }

  /** Whether a worker has a running delivery. */
  holds(worker: string): boolean {
    return [...this.#deliveries.values()].some(
      ({ state, holder }) => state === 'running' && holder?.worker === worker,
    );
  }

  async received(
    events: readonly IncomingEvent[],
    receipts: readonly StoreReceipt[],
  ): Promise<void> {
    const { handlers: known } = await this.#store.catalog();
    const repeats: [IncomingEvent, StoreReceipt][] = [];
    events.forEach((event, index) => {
      const receipt = receipts[index]!;
      if (receipt.outcome !== 'stored') {
        if (receipt.outcome !== 'outdated') repeats.push([event, receipt]);
        return;
      }
      const { company, id, orderingKey, eventType, stale } = event;
      if (stale) {
        this.#stale.set(`${company}/${id}`, event);
        if (event.handlers.length > 0) this.violations.push(`${company}/${id} is stale, and runs`);
        return;
      }
      const once = `${company}/${eventType}/${orderingKey}`;
      const first = this.#once.get(once);
      const isOnce = POLLED_TYPES.some((type) => type === eventType);
      if (isOnce && orderingKey !== null && first !== undefined) {
        this.violations.push(
          `${company}/${id} was stored, although ${first} has the same transaction: ${once}`,
        );
      }
      this.#once.set(once, id);
      for (const { name, patterns } of known) {
        if (name === POLL_HANDLER) continue;
        const takes = patterns.some((pattern) => matchesPattern(pattern, event.eventType));
        if (takes && !event.handlers.includes(name)) {
          this.violations.push(`IN-32 ${company}/${id} was stored without a delivery to ${name}`);
        }
      }
      for (const handler of event.handlers) {
        const key = `${company}/${id}/${handler}`;
        if (this.#deliveries.has(key)) this.violations.push(`IN-02 ${key} was stored twice`);
        this.#deliveries.set(key, newDelivery());
      }
      this.claimed(event.assign?.workerId ?? '?', receipt.claimed);
    });
    for (const [{ company, id }, receipt] of repeats) {
      const first = await this.#store.find(company, receipt.id);
      const noted = first?.repeats.some((repeat) => repeat.id === id) ?? false;
      if (receipt.id !== id && !noted) {
        this.violations.push(`${company}/${id} is a duplicate, but not a repeat of ${receipt.id}`);
      }
    }
  }

  claimed(worker: string, claimed: StoreReceipt['claimed']): void {
    for (const lease of claimed) {
      const key = keyOf(lease);
      const delivery = this.#deliveries.get(key);
      if (delivery === undefined) {
        this.violations.push(`${key} was claimed, but was never received`);
        continue;
      }
      const expected = this.#nextAttempt(key, delivery);
      if (lease.attempt !== expected) {
        this.violations.push(
          `IN-19 the claim of ${key} is attempt ${lease.attempt}, not ${expected}`,
        );
      }
      if (lease.token <= (this.#lastTokens.get(key) ?? -Infinity)) {
        this.violations.push(`IN-13 the token of ${key} did not increase`);
      }
      this.#lastTokens.set(key, lease.token);
      delivery.state = 'running';
      delivery.attempts = lease.attempt;
      delivery.holder = {
        token: lease.token,
        worker,
        suspect: lease.crashes > 0,
        since: this.#now(),
      };
    }
  }

  /** Call this method after `complete`, `fail`, `release` or `commit`, settled or not. */
  settled(
    lease: Lease,
    by:
      | 'complete'
      | 'commit'
      | 'release'
      | { readonly retryInMs: number | null; readonly error: string },
    { settled }: Pick<SettleResult, 'settled'>,
  ): void {
    const key = keyOf(lease);
    const delivery = this.#deliveries.get(key)!;
    const { holder } = delivery;
    const current = delivery.state === 'running' && holder?.token === lease.token;
    if (settled && !current) {
      this.violations.push(`IN-13 token ${lease.token} of ${key} was outdated, but settled it`);
    }
    if (!settled && current && !this.#journal.lost(holder.worker, holder.since)) {
      this.violations.push(
        `IN-13 token ${lease.token} of ${key} was current, but did not settle it`,
      );
    }
    if (!settled) return;
    delivery.holder = null;
    if (by === 'complete' || by === 'commit') {
      delivery.state = 'done';
    } else if (by === 'release') {
      delivery.state = 'pending';
      delivery.attempts -= 1;
    } else {
      this.violations.push(...checkFailure(key, delivery.attempts, by, this.#maxAttempts));
      delivery.state = by.retryInMs === null ? 'dead' : 'pending';
    }
  }

  /**
   * Call this method after an operator's action. It checks the changes and applies them to the model. Returns the stale events
   * that the operator redrove.
   */
  async operated(
    selections: readonly DeliverySelection[],
    by: OperatorAction,
  ): Promise<readonly IncomingEvent[]> {
    const redriven: IncomingEvent[] = [];
    for (const { company, id, handlers } of selections) {
      const stored = await this.#store.find(company, id);
      const stale = this.#stale.get(`${company}/${id}`);
      if (stale !== undefined && stored?.stale === false) {
        this.#stale.delete(`${company}/${id}`);
        redriven.push(stale);
      }
      for (const { handler, state, attempts } of stored?.deliveries ?? []) {
        if (handlers.includes(handler))
          this.#operated(`${company}/${id}/${handler}`, state, attempts, by);
      }
    }
    return redriven;
  }

  /** Compares the stored deliveries with the model. Call this method when no operation is under way. */
  async checkStored(): Promise<void> {
    const seen = new Set<string>();
    const page = await this.#store.list({ filter: {}, order: 'oldest', limit: 1000, after: null });
    for (const { company, id, deliveries } of page.events) {
      for (const { handler, state, attempts } of deliveries) {
        const key = `${company}/${id}/${handler}`;
        seen.add(key);
        const model = this.#deliveries.get(key);
        const is = `${state} after ${attempts} attempts`;
        const must = `${model?.state} after ${model?.attempts} attempts`;
        const uncertain = model?.state === 'running' && model.holder === null;
        if (is !== must && !uncertain) this.violations.push(`${key} is ${is}, not ${must}`);
      }
    }
    for (const key of this.#deliveries.keys()) {
      if (!seen.has(key)) this.violations.push(`IN-09 ${key} is missing`);
    }
  }

  /** The number of the attempt that a claim starts. Checks that the delivery may be claimed. */
  #nextAttempt(key: string, delivery: ModelDelivery): number {
    const { state, attempts, holder } = delivery;
    if (state === 'pending') return attempts + 1;
    if (state !== 'running') {
      this.violations.push(`IN-06 ${key} was claimed while it was ${state}`);
      return attempts + 1;
    }
    if (holder === null) return attempts;
    if (!this.#journal.lost(holder.worker, holder.since)) {
      this.violations.push(`IN-11 ${key} was claimed while worker ${holder.worker} ran it`);
    }
    const counted = holder.suspect && !this.#journal.hasRetired(holder.worker);
    return counted ? attempts + 1 : attempts;
  }

  #operated(key: string, state: DeliveryState, attempts: number, by: OperatorAction): void {
    const model = this.#deliveries.get(key);
    // A redrive added a delivery that the model does not have.
    if (model === undefined) this.#deliveries.set(key, newDelivery(state, attempts));
    else this.violations.push(...applyAction(key, model, { state, attempts }, by));
  }
}

function keyOf({ company, id, handler }: Lease): string {
  return `${company}/${id}/${handler}`;
}
