import { equal } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type {
  ClaimedDelivery,
  HandlerDeclaration,
  HeartbeatResult,
  IncomingEvent,
  InboxStore,
} from '../../inbox/store/inbox-store.js';

/** `leaseMs` of the workers in the contract's cases. */
export const LEASE_MS = 60_000;

export const NOW = { force: false, dueInMs: [0] };

/** An event for one handler, `book`, with the given fields in place of the defaults. */
export function incoming(event: Partial<IncomingEvent> = {}): IncomingEvent {
  const id = event.id ?? randomUUID();
  return {
    company: 'acme',
    id,
    eventType: 'transaction.completed',
    occurredAt: new Date('2025-11-20T10:00:00.000Z'),
    orderingKey: null,
    raw: Buffer.from(`{"id":"${id}"}`),
    headers: {},
    onceKey: null,
    handlers: ['book'],
    catalogVersion: 0,
    assign: null,
    stale: false,
    ...event,
  };
}

/** A registered worker at a store. */
export class TestWorker {
  private constructor(
    readonly store: InboxStore,
    readonly id: string,
  ) {}

  /** Without handlers in the catalog, its version stays 0, as in {@link incoming}. */
  static async start(
    store: InboxStore,
    handlers: readonly HandlerDeclaration[] = [],
    leaseMs = LEASE_MS,
  ): Promise<TestWorker> {
    const worker = new TestWorker(store, randomUUID());
    await store.register({ id: worker.id, leaseMs, handlers });
    return worker;
  }

  /** Claims, again if the store only held deliveries of busy keys and more is due. */
  async claim(handlers: readonly string[] = ['book'], limit = 100): Promise<ClaimedDelivery[]> {
    const wanted = handlers.map((handler) => ({ handler, limit }));
    for (let tries = 0; tries < 20; tries += 1) {
      const claimed = await this.store.claim({ worker: this.id, wanted });
      const dueInMs = claimed.length > 0 ? null : await this.store.nextDueInMs(handlers);
      if (dueInMs === null || dueInMs > 0) return claimed;
    }
    return [];
  }

  /** Claims the only delivery that is due. */
  async claimOne(handler = 'book'): Promise<ClaimedDelivery> {
    const claimed = await this.claim([handler]);
    equal(claimed.length, 1, `${claimed.length} deliveries are due to ${handler}, not one`);
    return claimed[0]!;
  }

  async claimSuspect(alone: boolean, handlers = ['book']): Promise<ClaimedDelivery | null> {
    return this.store.claimSuspect({ worker: this.id, handlers, alone });
  }

  /** Twice: the first one only renews, if it is late. */
  async heartbeat(): Promise<HeartbeatResult> {
    await this.store.heartbeat(this.id);
    return this.store.heartbeat(this.id);
  }

  /** Lets a lease pass in which only this worker sends heartbeats, so that it declares the others dead. */
  async outlive(advance: (ms: number) => Promise<void>): Promise<HeartbeatResult> {
    await this.heartbeat();
    await advance(LEASE_MS + 1000);
    return this.heartbeat();
  }
}

/** `state attempts` of an event's deliveries, by handler. */
export async function states(
  store: InboxStore,
  { id, company = 'acme' }: { id: string; company?: string },
): Promise<Record<string, string>> {
  const event = await store.find(company, id);
  return Object.fromEntries(
    (event?.deliveries ?? []).map(({ handler, state, attempts }) => [
      handler,
      `${state} ${attempts}`,
    ]),
  );
}

/** Attempt, outcome and error of each entry in the history of an event's first delivery. */
export async function historyOf(store: InboxStore, { id }: { id: string }): Promise<unknown[][]> {
  const event = await store.find('acme', id);
  const history = event?.deliveries[0]?.history ?? [];
  return history.map(({ attempt, outcome, error }) => [attempt, outcome, error]);
}

export function idsOf(of: readonly { readonly id: string }[]): string[] {
  return of.map(({ id }) => id);
}

/** Numbers from 0 to 1 that look random and are the same each time. */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}
