import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { ApplicationFleet } from './application-fleet.js';
import { monotonicMs } from './application-protocol.js';
import type { ReportedEvent, ReportedExpectation } from './application-protocol.js';
import type { ChaosStore } from './chaos-store.js';
import { check } from './checker.js';
import type { Observations } from './checker.js';
import { planEvents, TAKEOVER_EVENT } from './event-plan.js';
import { ExpectedPayments } from './expected-payments.js';
import { FaultInjector } from './fault-injector.js';
import { planFaults } from './fault-plan.js';
import { readJournal } from './journal.js';
import { planPayments } from './payment-plan.js';
import { summarize } from './report.js';
import type { ChaosResult } from './report.js';
import { SeededRandom } from './seeded-random.js';
import { Sender } from './sender.js';

/** Application processes on each store. */
export const PROCESSES = 3;
/** The shortest lease that the module accepts. */
const LEASE_MS = 1000;
const DRAIN_MS = 1000;
const PER_SECOND = 30;
/** Expected payments per second: with webhook requests and without. */
const PAYMENTS_PER_SECOND = { mixed: 6, alone: 15 };
const WEBHOOK_SECRET = 'whsec_chaos';
/** The maximum time that the processes may take to start, in milliseconds. */
const START_MS = 60_000;
/** The maximum time that the last faults may take, in which processes and PostgreSQL restart, in milliseconds. */
const FAULTS_MS = 180_000;
/** The maximum time without any progress of the processes, in milliseconds. */
const QUIET_MS = 45_000;
/** The maximum time that the processes may take to handle all events after the faults, in milliseconds. */
const RECOVERY_MS = 240_000;
/** The maximum time that a process may take to read all events of a run of several minutes, in milliseconds. */
const REPORT_MS = 60_000;

export interface ChaosOptions {
  /** The same seed plans the same events and faults at the same times. Their effects also depend on the machine. */
  readonly seed: string;
  /** How long the run sends events and injects faults. */
  readonly seconds: number;
  /** Main file of the application. */
  readonly application: string;
  readonly store: ChaosStore;
  /** Whether the service sends webhook requests. If not, polls find all payments. */
  readonly webhooks: boolean;
  /** Stops the run early. */
  readonly signal: AbortSignal;
}

/**
 * Sends events and purchases to several application processes, and injects faults meanwhile. Then waits until all
 * events and payments are handled, lets one process take over a delivery of another process, and checks every event and
 * payment. Leaves no process running. If a promise was broken, keeps the journals of the processes.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const { store, seed, seconds, signal, webhooks } = options;
  const folder = await mkdtemp(path.join(tmpdir(), 'payments-chaos-journals-'));
  const timeUp = new AbortController();
  const stopped = AbortSignal.any([signal, timeUp.signal]);
  let keep = false;
  try {
    const run = { store: store.kind, seconds, processes: PROCESSES };
    const events = webhooks
      ? planEvents(new SeededRandom(seed, 'events'), { ...run, perSecond: PER_SECOND })
      : [];
    const payments = planPayments(new SeededRandom(seed, 'payments'), {
      ...run,
      perSecond: webhooks ? PAYMENTS_PER_SECOND.mixed : PAYMENTS_PER_SECOND.alone,
      webhooks,
    });
    const faults = planFaults(new SeededRandom(seed, 'faults'), { ...run, leaseMs: LEASE_MS });
    const sender: Sender = new Sender((target) => fleet.url(target), WEBHOOK_SECRET);
    const expected = new ExpectedPayments(payments, sender, stopped);
    await using service = await expected.startService(new SeededRandom(seed, 'service'));
    await using fleet = new ApplicationFleet({
      file: options.application,
      count: PROCESSES,
      folder,
      setup: {
        store: store.kind,
        webhookSecret: WEBHOOK_SECRET,
        serviceUrl: service.url,
        leaseMs: LEASE_MS,
        drainMs: DRAIN_MS,
      },
      database: (target) => store.database(target),
    });
    await fleet.ready(START_MS);
    const handled = (): Promise<void> => untilHandled(() => unfinished(fleet, expected), signal);
    const injector = new FaultInjector(fleet, store);
    const injecting = injector.inject(faults, stopped);
    const sending = Promise.allSettled([sender.send(events, stopped), expected.purchase()]);
    await untilInjected(injecting, [injector], options);
    await within(QUIET_MS, sending, signal);
    await handled();
    await expected.sweep(() => requestUntilAnswered('sweep', fleet, signal));
    await handled();
    await expected.contradict(fleet);
    // Now no other delivery that may have crashed a process delays the takeover.
    const last = webhooks ? [TAKEOVER_EVENT] : [];
    const takingOver = webhooks ? [sender.send(last, stopped), injector.takeOver(stopped)] : [];
    await within(2 * QUIET_MS, Promise.all(takingOver), signal);
    await handled();
    timeUp.abort();
    const stored = await requestUntilAnswered<ReportedEvent>('report', fleet, signal);
    const expectations = await requestUntilAnswered<ReportedExpectation>(
      'expectations',
      fleet,
      signal,
    );
    const until = monotonicMs();
    await fleet[Symbol.asyncDispose]();
    const observed: Observations = {
      events: [...events, ...last],
      payments: {
        payments,
        transactions: service.transactions,
        expectations,
        webhooks,
      },
      sent: sender.sent,
      effects: await store.effects(),
      stored,
      processes: recordsOf(fleet),
      exits: fleet.exits,
      faults: injector.injected,
      lateDrains: injector.lateDrains,
      newHandlerKnown: newHandlerKnown(fleet),
      leaseMs: LEASE_MS,
      left: null,
      until,
    };
    const violations = check(observed);
    keep = violations.length > 0;
    const facts = { seed, seconds, store: store.kind, journals: keep ? folder : null };
    return summarize({ ...facts, requests: sender.requests }, faults, observed, violations);
  } finally {
    timeUp.abort();
    if (!keep) await rm(folder, { recursive: true, force: true });
  }
}

/** Waits until all faults have ended. Throws if they do not end in time, or if a fault fails. */
export async function untilInjected(
  injecting: Promise<unknown>,
  injectors: readonly FaultInjector[],
  { seed, seconds, signal }: Pick<ChaosOptions, 'seed' | 'seconds' | 'signal'>,
): Promise<void> {
  if (!(await within(seconds * 1000 + FAULTS_MS, injecting, signal))) {
    const late = injectors
      .flatMap(({ unfinished }) => [...unfinished])
      .map(({ kind, atMs }) => `${kind} at ${atMs} ms`);
    const silent = injectors.flatMap(({ silent }) => silent).join('');
    throw new Error(`Faults do not end, with the seed ${seed}: ${late.join(', ')}.${silent}`);
  }
  await injecting;
}

/**
 * Waits until `unfinished` returns 0, until its result has not fallen for `quietMs`, or at most `limitMs`. Deliveries that
 * may have crashed a process run one after the other, so a large number of such deliveries takes a while.
 */
export async function untilHandled(
  unfinished: () => Promise<number>,
  signal: AbortSignal,
  { quietMs, limitMs } = { quietMs: QUIET_MS, limitMs: RECOVERY_MS },
): Promise<void> {
  const begin = performance.now();
  let end = begin + quietMs;
  let fewest = Infinity;
  while (fewest > 0 && performance.now() < Math.min(end, begin + limitMs)) {
    const left = await unfinished().catch(() => Infinity);
    if (left < fewest) {
      fewest = left;
      end = performance.now() + quietMs;
    }
    await setTimeout(100, undefined, { signal });
  }
}

/** The processes of a fleet and their journals. */
export function recordsOf(fleet: ApplicationFleet): Observations['processes'] {
  return fleet.processes.map(({ name, setup, endedAt }) => ({
    name,
    journal: readJournal(setup.journal),
    endedAt,
  }));
}

async function unfinished(fleet: ApplicationFleet, expected: ExpectedPayments): Promise<number> {
  // Reads the payments first, because a poll adds deliveries.
  const payments = await expected.unfinished(fleet);
  return payments + (await fleet.request<number>('unfinished'));
}

/** Reads the inbox, or polls all open payments. Retries for 10 s, because a process may be restarting. */
export async function requestUntilAnswered<T>(
  type: 'report' | 'expectations' | 'sweep',
  fleet: ApplicationFleet,
  signal: AbortSignal,
): Promise<T[]> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await fleet.request<T[]>(type, REPORT_MS);
    } catch (error) {
      if (attempt === 20) throw error;
      await setTimeout(500, undefined, { signal });
    }
  }
}

/** The time between the first registration of the second version and the response of the store. */
function newHandlerKnown({ processes }: ApplicationFleet): Observations['newHandlerKnown'] {
  const registered = processes
    .filter(({ setup }) => setup.version === 2)
    .flatMap(({ setup }) => readJournal(setup.journal))
    .filter((entry) => entry.kind === 'worker-registered');
  if (registered.length === 0) return null;
  return {
    from: Math.min(...registered.map(({ at }) => at)),
    to: Math.min(...registered.map(({ end }) => end)),
  };
}

/** Whether the promise resolves or rejects in time. Rejects if `signal` aborts before. */
export async function within(
  ms: number,
  promise: Promise<unknown>,
  signal: AbortSignal,
): Promise<boolean> {
  const timer = new AbortController();
  const either = AbortSignal.any([signal, timer.signal]);
  const late = setTimeout(ms, false, { signal: either }).catch(() => false);
  const ended = promise.then(
    () => true,
    () => true,
  );
  const inTime = await Promise.race([ended, late]);
  timer.abort();
  signal.throwIfAborted();
  return inTime;
}
