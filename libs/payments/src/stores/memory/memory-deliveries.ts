import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { boundedError, HISTORY_LENGTH } from '../../inbox/store/stored-event.js';
import type { HistoryEntry } from '../../inbox/store/stored-event.js';
import type {
  ClaimedDelivery,
  ClaimRequest,
  DeliverySelection,
  InboxStore,
  Lease,
  SettleResult,
  SuspectRequest,
} from '../../inbox/store/inbox-store.js';
import type { EventIndex } from './event-index.js';
import { dueBefore, HandlerQueue, isFree, MemoryDelivery } from './memory-rows.js';
import type { MemoryEvent } from './memory-rows.js';

/** The operations of a memory store that change deliveries. */
export abstract class MemoryDeliveries {
  /** The running deliveries, by fencing token. Each claim has a token of its own. */
  protected readonly running = new Map<number, MemoryDelivery>();
  protected readonly handlers = new Map<string, HandlerQueue>();
  protected readonly paused = new Set<string>();
  readonly #listeners = new Set<() => void>();
  #token = 0;

  constructor(
    protected readonly events: EventIndex,
    protected readonly runtime: PaymentsRuntime,
  ) {}

  async claim({ worker, wanted }: ClaimRequest): Promise<ClaimedDelivery[]> {
    const now = this.runtime.monotonic();
    const claimed: ClaimedDelivery[] = [];
    for (const { handler: name, limit } of wanted) {
      const [handler] = this.unpaused([name]);
      for (let left = limit; left > 0; left -= 1) {
        const row = handler?.nextDue(now);
        if (row === undefined) break;
        row.handler.move(row, 'running', now);
        claimed.push(this.#lease(row, worker, now));
      }
    }
    return claimed;
  }

  async claimSuspect({ worker, handlers }: SuspectRequest): Promise<ClaimedDelivery | null> {
    const now = this.runtime.monotonic();
    const ready = this.unpaused(handlers)
      .flatMap(({ suspects }) => [...suspects])
      .filter(({ dueAt, key }) => dueAt <= now && !key?.running);
    const [row] = ready.toSorted((a, b) => (dueBefore(a, b) ? -1 : 1));
    if (row === undefined) return null;
    row.handler.move(row, 'running', now);
    return this.#lease(row, worker, now);
  }

  async newerHandled({ token }: Lease): Promise<boolean> {
    const { key, event } = this.running.get(token) ?? {};
    return key != null && key.newestDone > event!.occurredMs;
  }

  async complete(lease: Lease): Promise<SettleResult> {
    return this.settle(lease, (row) => {
      const { key, event } = row;
      row.crashes = 0;
      if (key) key.newestDone = Math.max(key.newestDone, event.occurredMs);
      return this.move(row, 'done');
    });
  }

  async fail(
    lease: Lease,
    failure: { error: string; retryInMs: number | null },
  ): Promise<SettleResult> {
    return this.settle(lease, (row) => {
      row.crashes = 0;
      row.lastError = boundedError(failure.error);
      this.#addAttempt(row, 'f', row.lastError);
      if (failure.retryInMs === null) return this.move(row, 'dead');
      return this.reopen(row, failure.retryInMs);
    });
  }

  async release(lease: Lease, dueInMs = 0): Promise<SettleResult> {
    return this.settle(lease, (row) => {
      row.attempts -= 1;
      return this.reopen(row, dueInMs);
    });
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    const dueAt = Math.min(...this.unpaused(handlers).map(({ nextDueAt }) => nextDueAt));
    return dueAt === Infinity ? null : dueAt - this.runtime.monotonic();
  }

  onWake(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async redrive(...[selections, options]: Parameters<InboxStore['redrive']>): Promise<number> {
    let changed = 0;
    selections.forEach(({ company, id, handlers }, n) => {
      const event = this.events.find(company, id);
      if (event === undefined || event.raw === null) return;
      const dueInMs = options.dueInMs[n] ?? 0;
      for (const name of new Set(handlers)) {
        const row = event.deliveries.find(({ handler }) => handler.name === name);
        if (row?.state === 'running' || (row?.state === 'done' && !options.force)) continue;
        if (row && row.state !== 'pending') {
          row.earlier = row.history;
          row.attempts = 0;
        }
        const isFirst = row === undefined && event.deliveries.length === 0;
        if (isFirst && event.fixed.stale && !this.refresh(event, options.fulfils ?? [])) continue;
        if (row) this.reopen(row, dueInMs);
        else this.deliver(event, name, dueInMs);
        changed += 1;
      }
    });
    if (changed > 0) this.wake();
    return changed;
  }

  async skip(selections: readonly DeliverySelection[]): Promise<number> {
    const rows = selections.flatMap(({ company, id, handlers }) =>
      (this.events.find(company, id)?.deliveries ?? []).filter(({ handler }) =>
        handlers.includes(handler.name),
      ),
    );
    return this.skipRows(rows);
  }

  async pause(handler: string, paused: boolean): Promise<void> {
    if (paused) this.paused.add(handler);
    else if (this.paused.delete(handler)) this.wake();
  }

  /** Makes a stale event count as the event of its transaction. Returns whether it does now. */
  protected abstract refresh(event: MemoryEvent, fulfils: readonly string[]): boolean;

  /** Adds a delivery: running if `worker` is given and the ordering key is free, otherwise pending. */
  protected deliver(
    event: MemoryEvent,
    name: string,
    dueInMs: number,
    worker?: string,
  ): ClaimedDelivery | null {
    const now = this.runtime.monotonic();
    const handler = this.#handler(name);
    const row = new MemoryDelivery(event, handler, now + dueInMs);
    const assigned = worker !== undefined && !this.#isPaused(name) && isFree(row.key, now);
    if (assigned) row.state = 'running';
    event.deliveries = [...event.deliveries, row];
    handler.add(row, now);
    event.index?.update(event, now);
    return assigned ? this.#lease(row, worker, now) : null;
  }

  /** Frees a running delivery: its worker was declared dead (`lost`), or has retired and its grace is over. */
  protected free(row: MemoryDelivery, lost: boolean): void {
    if (lost) this.#addAttempt(row, 'l');
    if (!lost || row.crashes === 0) row.attempts -= 1;
    if (lost) row.crashes += 1;
    this.reopen(row, 0);
  }

  /** Skips the deliveries that are pending or dead. Returns how many. */
  protected skipRows(rows: readonly MemoryDelivery[]): number {
    const open = [...new Set(rows)].filter(({ state }) => state === 'pending' || state === 'dead');
    for (const row of open) {
      row.crashes = 0;
      this.move(row, 'skipped');
    }
    return open.length;
  }

  /** The handlers that are not paused. */
  protected unpaused(names: readonly string[]): HandlerQueue[] {
    return names.filter((name) => !this.#isPaused(name)).map((name) => this.#handler(name));
  }

  wake(): void {
    for (const listener of this.#listeners) listener();
  }

  #handler(name: string): HandlerQueue {
    let handler = this.handlers.get(name);
    if (handler === undefined) this.handlers.set(name, (handler = new HandlerQueue(name)));
    return handler;
  }

  #isPaused(handler: string): boolean {
    return this.paused.has('*') || this.paused.has(handler);
  }

  #lease(row: MemoryDelivery, worker: string, now: number): ClaimedDelivery {
    const { fixed, seq, receivedAt, receivedMs, raw, headers } = row.event;
    row.token = this.#token += 1;
    row.attempts += 1;
    row.worker = worker;
    row.startedAt = this.runtime.now();
    this.running.set(row.token, row);
    return {
      company: fixed.company,
      id: fixed.id,
      handler: row.handler.name,
      token: row.token,
      seq,
      attempt: row.attempts,
      receivedAt: new Date(receivedMs),
      ageMs: now - receivedAt,
      source: fixed.source,
      // The body of an unfinished event is never deleted. The worker gives the handler a copy.
      raw: raw!,
      crashes: row.crashes,
      traced: { traceparent: headers['traceparent'] ?? null, eventType: fixed.eventType },
    };
  }

  /** @param act settles the delivery. It returns whether a waiting delivery of the ordering key became claimable. */
  protected settle(lease: Lease, act: (row: MemoryDelivery) => boolean): SettleResult {
    const row = this.running.get(lease.token);
    const isCurrent = row?.event.seq === lease.seq && row.handler.name === lease.handler;
    return isCurrent ? { settled: true, nextDue: act(row) } : { settled: false, nextDue: false };
  }

  /** Makes the delivery pending, due in `dueInMs`. If it is pending already, it can only become due earlier. */
  protected reopen(row: MemoryDelivery, dueInMs: number): boolean {
    const dueAt = this.runtime.monotonic() + dueInMs;
    if (row.state === 'pending' && row.dueAt <= dueAt) return false;
    row.dueAt = dueAt;
    return this.move(row, 'pending');
  }

  /** Changes the state. Returns whether a waiting delivery of the same ordering key became claimable. */
  protected move(row: MemoryDelivery, state: 'pending' | 'done' | 'dead' | 'skipped'): boolean {
    const now = this.runtime.monotonic();
    this.running.delete(row.token);
    row.finishedAt = state === 'pending' ? null : this.runtime.now();
    const isNextDue = row.handler.move(row, state, now);
    row.event.index?.update(row.event, now);
    return isNextDue;
  }

  /** Adds the attempt that failed or was lost to the history. */
  #addAttempt(row: MemoryDelivery, outcome: 'f' | 'l', ...error: [] | [string]): void {
    const { attempts, startedAt, earlier } = row;
    const tookMs = this.runtime.now() - startedAt;
    const entry: HistoryEntry = [attempts, startedAt, tookMs, outcome, ...error];
    row.earlier = [...earlier.slice(1 - HISTORY_LENGTH), entry];
  }
}
