import { ModuleLogger } from '../../errors/module-log.js';
import { checkFields, flag, whole } from '../../errors/option-checks.js';
import type { OptionChecks } from '../../errors/option-checks.js';
import { PaymentsError } from '../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { countActivity } from '../../inbox/store/activity-per-minute.js';
import { boundedError, MAX_OF_PAYMENT } from '../../inbox/store/stored-event.js';
import type {
  HandlerPause,
  ClaimedDelivery,
  DeliveryState,
  InboxDefinition,
  InboxStore,
  IncomingEvent,
  KnownHandler,
  Lease,
  SettleResult,
  StoreReceipt,
} from '../../inbox/store/inbox-store.js';
import { addCopy, EventIndex, HandlerQueue, MemoryDelivery, MemoryEvent } from './memory-events.js';
import type { MemoryLimits } from './memory-events.js';
import { memoryExpectations } from './memory-expectations.js';
import { memoryRecords } from './memory-records.js';
import {
  activitySlices,
  failedDeliveries,
  countStats,
  describeEvent,
  isOfPayment,
  matches,
  pageOf,
} from './memory-queries.js';

/** Options of {@link memoryInbox}. */
export interface MemoryInboxOptions {
  /**
   * Maximum number of stored events, including finished events. An event has finished if all its deliveries are done,
   * dead or skipped. If the inbox is full, a new event replaces the event that finished first, even a dead letter; if
   * no event has finished, the response to the webhook request is 503. Expectations have a separate limit with the same
   * value. 1 to 1,000,000. Default 10,000.
   */
  maxEvents?: number;
  /** Maximum total size of the stored bodies in bytes. 1 KiB to 16 GiB. Default 64 MiB. */
  maxBytes?: number;
  /** Whether to suppress the warning that this inbox logs at boot under `NODE_ENV=production`. Default `false`. */
  acceptInProduction?: boolean;
}

const WARNING =
  'The memory inbox is in use under NODE_ENV=production. It keeps events only in this process, so a restart loses ' +
  'them. After a restart, the handlers run again for a copy of an event that was handled before, and a delivery that ' +
  'waited for a retry is lost unless the sender repeats the event. A process does not recognise a duplicate of an ' +
  'event that another process received. Durable inboxes are sqliteInbox() for one machine and postgresInbox() for ' +
  'any number of machines. If the memory inbox is enough, memoryInbox({ acceptInProduction: true }) turns this ' +
  'warning off.';

/**
 * Stores events in the memory of this process. The inbox needs no set-up, and a restart loses all stored events. No
 * payment is lost, because the sender gets a 2xx response only after every handler has succeeded, and otherwise sends
 * the event again. However, the handlers run again for a copy of an event that was handled before the restart, even if
 * an attacker sends the copy. Events of any age are handled unless `webhook.maxAgeMs` is set, because a late event is
 * more likely than a replay.
 *
 * Use this inbox for tests, for development, and for applications whose handlers are quick and idempotent. Under
 * `NODE_ENV=production` the inbox logs one warning at boot.
 *
 * @throws PaymentsError `options_invalid`.
 */
export function memoryInbox(options: MemoryInboxOptions = {}): InboxDefinition {
  const { acceptInProduction, ...limits } = checkFields('memoryInbox', options, {
    maxEvents: whole({ default: 10_000, min: 1, max: 1_000_000, unit: 'events' }),
    maxBytes: whole({ default: 64 * 1024 ** 2, min: 1024, max: 16 * 1024 ** 3, unit: 'bytes' }),
    acceptInProduction: flag(false),
  } satisfies OptionChecks<MemoryInboxOptions>);
  return {
    name: 'memory',
    create: (runtime) => {
      if (runtime.environment === 'production' && !acceptInProduction) {
        new ModuleLogger('PaymentInbox').warn(WARNING);
      }
      return memoryStore(limits, runtime);
    },
  };
}

const NOT_SETTLED: SettleResult = Object.freeze({ settled: false, nextDue: false });

/**
 * Creates the store of `memoryInbox()` for one process. The only worker of the store runs in the same process.
 * Therefore, the store has no leases and no suspects, and the process wakes its worker itself. Due times are on the
 * monotonic clock, which a change of the wall clock does not affect.
 *
 * The returned object contains only functions, so a log of the object contains no bodies or headers of events.
 */
export function memoryStore(limits: MemoryLimits, runtime: PaymentsRuntime): InboxStore<never> {
  const events = new EventIndex(limits);
  const catalog = new Map<string, KnownHandler>();
  const queues = new Map<string, HandlerQueue>();
  const paused = new Map<string, HandlerPause>();
  /** The running deliveries, by fencing token. Each claim has a token of its own. */
  const running = new Map<number, MemoryDelivery>();
  let version = 0;
  let lastSeq = 0;
  let lastToken = 0;

  const isPaused = (handler: string): boolean =>
    paused.size > 0 && (paused.has('*') || paused.has(handler));

  /** Returns the queue of a handler; `undefined` if the handler is paused or has never had a delivery. */
  const claimableQueue = (handler: string): HandlerQueue | undefined =>
    isPaused(handler) ? undefined : queues.get(handler);

  const toDate = (monotonicMs: number): Date =>
    new Date(runtime.now() + monotonicMs - runtime.monotonic());

  function receive(incoming: readonly IncomingEvent[]): StoreReceipt[] {
    const [now, wallMs] = [runtime.monotonic(), runtime.now()];
    const rows = incoming.map((event) => {
      // Copies the body, because the caller may reuse its buffer.
      const own = { ...event, raw: Buffer.from(event.raw), assign: null };
      return new MemoryEvent(own, wallMs, now, (lastSeq += 1));
    });
    const originals = rows.map((row) => {
      const original = events.original(row);
      if (original !== undefined || row.event.catalogVersion !== version) return original;
      events.add(row);
      return row;
    });
    events.makeRoom(rows);
    return rows.map((row, index) => receiptOf(row, originals[index], incoming[index]!.assign));
  }

  /** @param original the stored event: `row` itself, or the event that `row` is a copy of. */
  function receiptOf(
    row: MemoryEvent,
    original: MemoryEvent | undefined,
    assign: IncomingEvent['assign'],
  ): StoreReceipt {
    const { event } = row;
    const claimed = original === row ? addDeliveries(row, assign) : [];
    const pending = original === row && claimed.length < event.handlers.length;
    let outcome: StoreReceipt['outcome'] = 'outdated';
    if (original !== undefined) outcome = original === row ? 'stored' : addCopy(original, row);
    const isKnown = outcome === 'stored' || outcome === 'duplicate';
    const fulfilled = event.fulfils && isKnown ? expectations.fulfil(event, original!.event) : [];
    return { outcome, id: (original ?? row).event.id, claimed, pending, fulfilled };
  }

  function addDeliveries(row: MemoryEvent, assign: IncomingEvent['assign']): ClaimedDelivery[] {
    const claimed: ClaimedDelivery[] = [];
    const { handlers } = row.event;
    for (const name of handlers) {
      const delivery = deliver(row, name, row.receivedAt);
      const assigned = assign !== null && assign.handlers.includes(name) && !isPaused(name);
      if (assigned && delivery.key.isFree(row.receivedAt)) {
        claimed.push(lease(delivery, row.receivedAt));
      } else delivery.handler.move(delivery, 'pending', row.receivedAt);
    }
    // An event without deliveries has finished.
    if (handlers.length === 0) events.update(row, row.receivedAt);
    return claimed;
  }

  /** Adds a delivery, which is neither pending nor running yet. */
  function deliver(row: MemoryEvent, name: string, dueAt: number): MemoryDelivery {
    let queue = queues.get(name);
    if (queue === undefined) queues.set(name, (queue = new HandlerQueue(name)));
    const delivery = new MemoryDelivery(row, queue, dueAt);
    row.deliveries = [...row.deliveries, delivery];
    return delivery;
  }

  function lease(delivery: MemoryDelivery, now: number): ClaimedDelivery {
    const { handler } = delivery;
    const { event, seq, receivedAt, receivedMs } = delivery.row;
    handler.move(delivery, 'running', now);
    delivery.token = lastToken += 1;
    delivery.attempts += 1;
    delivery.startedAt = runtime.now();
    running.set(delivery.token, delivery);
    return {
      company: event.company,
      id: event.id,
      handler: handler.name,
      token: delivery.token,
      seq,
      attempt: delivery.attempts,
      receivedAt: new Date(receivedMs),
      ageMs: now - receivedAt,
      source: event.source,
      // The body of an unfinished event is never deleted. The worker gives the handler a copy.
      raw: event.raw,
      crashes: 0,
      traced: { traceparent: event.headers['traceparent'] ?? null, eventType: event.eventType },
    };
  }

  function leased({ token, seq, handler }: Lease): MemoryDelivery | undefined {
    const delivery = running.get(token);
    return delivery?.row.seq === seq && delivery.handler.name === handler ? delivery : undefined;
  }

  /** A delivery that is already pending can only become due earlier. */
  function reopen(delivery: MemoryDelivery, dueInMs: number): boolean {
    const dueAt = runtime.monotonic() + dueInMs;
    if (delivery.state === 'pending' && delivery.dueAt <= dueAt) return false;
    return move(delivery, 'pending', dueAt);
  }

  function move(
    delivery: MemoryDelivery,
    state: Exclude<DeliveryState, 'running'>,
    dueAt?: number,
  ): boolean {
    if (delivery.state === 'running') running.delete(delivery.token);
    const now = runtime.monotonic();
    const isNextDue = delivery.handler.move(delivery, state, now, dueAt);
    delivery.finishedAt = delivery.isOpen ? null : runtime.now();
    events.update(delivery.row, now);
    return isNextDue;
  }

  function redriveOne(
    row: MemoryEvent,
    name: string,
    dueInMs: number,
    { force, fulfils, unchangedSince }: Parameters<InboxStore['redrive']>[1],
  ): boolean {
    const delivery = row.deliveries.find(({ handler }) => handler.name === name);
    if (delivery?.state === 'running' || (delivery?.state === 'done' && !force)) return false;
    if (delivery === undefined) {
      if (row.deliveries.length === 0 && row.event.stale) {
        // From now on, the stale event counts as the event of its transaction, unless the transaction already has
        // another event.
        if (!events.refresh(row)) return false;
        if (fulfils?.includes(row.event.eventType)) expectations.fulfil(row.event, row.event);
      }
      move(deliver(row, name, runtime.monotonic() + dueInMs), 'pending');
      return true;
    }
    const since = unchangedSince?.getTime() ?? Infinity;
    if (Math.max(delivery.startedAt, delivery.finishedAt ?? 0) > since) return false;
    if (delivery.state !== 'pending') {
      delivery.earlier = delivery.history;
      delivery.attempts = 0;
    }
    reopen(delivery, dueInMs);
    return true;
  }

  const expectations = memoryExpectations(
    events,
    paused,
    (event) => receive([event])[0]!,
    limits.maxEvents,
    runtime,
  );

  const records = memoryRecords(runtime);

  const store: InboxStore<never> = {
    capabilities: Object.freeze({
      durable: false,
      shared: false,
      transactional: false,
      ownClock: false,
    }),

    expectations,

    records,

    async open() {},

    async close() {},

    async register({ handlers }) {
      const seenAt = new Date(runtime.now());
      for (const { name, patterns: declared } of handlers) {
        const known = catalog.get(name);
        const patterns = [...new Set(declared)].toSorted();
        if (known?.patterns.join('\n') === patterns.join('\n')) continue;
        const firstSeenAt = known?.firstSeenAt ?? seenAt;
        catalog.set(name, { name, patterns, firstSeenAt, lastSeenAt: seenAt });
        version += 1;
      }
      return store.catalog();
    },

    async heartbeat() {
      for (const { handler, until } of paused.values()) {
        if (until !== null && until.getTime() <= runtime.now()) paused.delete(handler);
      }
      return { alive: true, suspects: false };
    },

    async retire() {},

    async catalog() {
      const lastSeenAt = new Date(runtime.now());
      const handlers = Array.from(catalog.values(), (known) => ({ ...known, lastSeenAt }));
      return { version, handlers: handlers.toSorted((a, b) => (a.name < b.name ? -1 : 1)) };
    },

    async forgetHandler(name) {
      return !catalog.has(name);
    },

    async receive(incoming) {
      return receive(incoming);
    },

    async claim({ wanted }) {
      const now = runtime.monotonic();
      const claimed: ClaimedDelivery[] = [];
      for (const { handler, limit } of wanted) {
        const queue = claimableQueue(handler);
        for (let left = limit; left > 0; left -= 1) {
          const delivery = queue?.nextDue(now);
          if (delivery === undefined) break;
          claimed.push(lease(delivery, now));
        }
      }
      return claimed;
    },

    async claimSuspect() {
      return null;
    },

    async newerHandled({ token }) {
      const { key, row } = running.get(token) ?? {};
      return key !== undefined && key.newestDone > row!.event.occurredAt.getTime();
    },

    async complete(lease) {
      const delivery = leased(lease);
      if (delivery === undefined) return NOT_SETTLED;
      const { key, row } = delivery;
      key.newestDone = Math.max(key.newestDone, row.event.occurredAt.getTime());
      return { settled: true, nextDue: move(delivery, 'done') };
    },

    async fail(lease, { error, frames, retryInMs }) {
      const delivery = leased(lease);
      if (delivery === undefined) return NOT_SETTLED;
      delivery.lastError = boundedError(error);
      delivery.frames = frames || null;
      delivery.earlier = delivery.withAttempt(runtime.now(), 'f', delivery.lastError);
      const nextDue = retryInMs === null ? move(delivery, 'dead') : reopen(delivery, retryInMs);
      return { settled: true, nextDue };
    },

    async release(lease, dueInMs = 0) {
      const delivery = leased(lease);
      if (delivery === undefined) return NOT_SETTLED;
      delivery.attempts -= 1;
      return { settled: true, nextDue: reopen(delivery, dueInMs) };
    },

    async commit() {
      throw commitUnsupported();
    },

    async nextDueInMs(handlers) {
      const dueAt = Math.min(
        ...handlers.map((name) => claimableQueue(name)?.nextDueAt ?? Infinity),
      );
      return dueAt === Infinity ? null : dueAt - runtime.monotonic();
    },

    onWake: () => () => {},

    async find(company, id) {
      const row = events.find(company, id);
      return row && describeEvent(row, toDate, true);
    },

    async eventsOf(company, payment) {
      const rows = [...events.all()].filter((row) => isOfPayment(row, company, payment));
      const newest = rows.toReversed().slice(0, MAX_OF_PAYMENT);
      return newest.map((row) => ({ ...describeEvent(row, toDate, true), raw: null }));
    },

    async list({ filter, ...query }) {
      const { page, next } = pageOf(events.all(), (row) => matches(row, filter), query);
      return { events: page.map((row) => describeEvent(row, toDate, false)), next };
    },

    async stats() {
      const byHandler = (a: HandlerPause, b: HandlerPause) => (a.handler < b.handler ? -1 : 1);
      const pauses = [...paused.values()].toSorted(byHandler);
      return { ...countStats(events, runtime.monotonic()), paused: pauses };
    },

    async failures() {
      return failedDeliveries(events);
    },

    async activity(minutes, bodiesMs) {
      const now = runtime.now();
      const deletedMs = Math.max(events.deletedMs, now - bodiesMs);
      return countActivity(minutes, now, deletedMs, activitySlices(events));
    },

    async redrive(selections, options) {
      let changed = 0;
      for (const [index, { company, id, handlers }] of selections.entries()) {
        const row = events.find(company, id);
        if (row === undefined || row.digest !== null) continue;
        for (const name of new Set(handlers)) {
          if (redriveOne(row, name, options.dueInMs[index] ?? 0, options)) changed += 1;
        }
      }
      return changed;
    },

    async skip(selections) {
      const selected = selections.flatMap(({ company, id, handlers }) => {
        const deliveries = events.find(company, id)?.deliveries ?? [];
        return deliveries.filter(({ handler }) => handlers.includes(handler.name));
      });
      const isOpen = ({ state }: MemoryDelivery) => state === 'pending' || state === 'dead';
      const open = [...new Set(selected)].filter(isOpen);
      for (const delivery of open) move(delivery, 'skipped');
      return open.length;
    },

    async pause(handler, isPaused, { who = null, reason = null, until = null } = {}) {
      const pausedAt = new Date(runtime.now());
      if (isPaused) paused.set(handler, { handler, pausedAt, who, reason, until });
      else paused.delete(handler);
    },

    async prune(request) {
      records.prune();
      const pruned = events.prune(request, runtime.monotonic(), runtime.now());
      return pruned + expectations.prune(request.tombstonesMs, request.limit - pruned);
    },
  };
  return store;
}

export function commitUnsupported(): PaymentsError {
  return new PaymentsError(
    'commit_unsupported',
    'context.commit() needs a database, and the memory inbox has none. Use sqliteInbox() or postgresInbox() with the ' +
      'database that your handler writes to, or do not call context.commit() in the handler.',
  );
}
