import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { ApplicationFleet } from './application-fleet.js';
import { machineMs } from './application-protocol.js';
import type { ReportedEvent } from './application-protocol.js';
import type { ChaosStore } from './chaos-store.js';
import { check } from './checker.js';
import { planEvents } from './event-plan.js';
import { FaultInjector } from './fault-injector.js';
import { planFaults } from './fault-plan.js';
import { readJournal } from './journal.js';
import { summarize } from './report.js';
import type { ChaosResult } from './report.js';
import { SeededRandom } from './seeded-random.js';
import { Sender } from './sender.js';

/** Processes of the application on each store. */
export const PROCESSES = 3;
/** As short as a lease can be. */
const LEASE_MS = 1000;
const DRAIN_MS = 1000;
const PER_SECOND = 30;
const WEBHOOK_SECRET = 'whsec_chaos';
/** For processes to start, in milliseconds. */
const START_MS = 60_000;
/** For how long faults may go on after the traffic, in milliseconds: processes start again, and PostgreSQL. */
const FAULTS_MS = 60_000;
/** How long after the traffic everything may take to be acknowledged, and then to be handled, in milliseconds. */
const QUIET_MS = 45_000;
/** How long the recovery may take in all. */
const RECOVERY_MS = 240_000;

/** What a run is given. */
export interface ChaosOptions {
  /** Fixes the faults and the events, and when each comes. What follows from them depends on the machine, too. */
  readonly seed: string;
  /** How long events are sent and faults happen. */
  readonly seconds: number;
  /** The application's main file. */
  readonly application: string;
  readonly store: ChaosStore;
  /** Ends the run early. */
  readonly signal: AbortSignal;
}

/**
 * Sends events to processes of one application while faults happen, waits until all is handled, and checks what became
 * of each event. Ends by itself, and leaves nothing running. If a promise was broken, it leaves the journals of the processes.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const { store, seed, seconds } = options;
  const folder = await mkdtemp(path.join(tmpdir(), 'payments-chaos-journals-'));
  let keep = false;
  try {
    const run = { store: store.kind, seconds, processes: PROCESSES };
    const events = planEvents(new SeededRandom(seed, 'events'), { ...run, perSecond: PER_SECOND });
    const faults = planFaults(new SeededRandom(seed, 'faults'), { ...run, leaseMs: LEASE_MS });
    await using fleet = new ApplicationFleet({
      file: options.application,
      count: PROCESSES,
      folder,
      setup: {
        store: store.kind,
        webhookSecret: WEBHOOK_SECRET,
        leaseMs: LEASE_MS,
        drainMs: DRAIN_MS,
      },
      where: (target) => store.where(target),
    });
    const timeUp = new AbortController();
    const signal = AbortSignal.any([options.signal, timeUp.signal]);
    await fleet.ready(START_MS);
    const sender = new Sender((target) => fleet.url(target), WEBHOOK_SECRET);
    const injector = new FaultInjector(fleet, store);
    const injecting = injector.inject(faults, signal).catch(() => {});
    const sending = sender.send(events, injecting, signal).catch(() => {});
    // The event of the takeover is stored then.
    const ended = sending.then(() => injector.takeOver(signal)).catch(() => {});
    const injected = await within(seconds * 1000 + FAULTS_MS, ended, signal);
    options.signal.throwIfAborted();
    if (!injected) {
      const faults = [...injector.underWay].map(({ kind, atMs }) => `${kind} at ${atMs} ms`);
      throw new Error(`Faults do not end, with the seed ${seed}: ${faults.join(', ')}.`);
    }
    const acknowledged = await within(QUIET_MS, sending, signal);
    timeUp.abort();
    options.signal.throwIfAborted();
    const stored = await settled(fleet, acknowledged, options.signal);
    const until = machineMs();
    await fleet[Symbol.asyncDispose]();
    const processes = fleet.processes.map(({ name, setup, endedAt }) => ({
      name,
      version: setup.version,
      journal: readJournal(setup.journal),
      endedAt,
    }));
    const registered = processes
      .filter(({ version }) => version === 2)
      .flatMap(({ journal }) => journal.filter((entry) => entry.kind === 'registered'));
    const observed = {
      events,
      sent: sender.sent,
      effects: await store.effects(),
      stored,
      processes,
      ends: fleet.ends,
      faults: injector.injected,
      lateDrains: injector.lateDrains,
      newHandlerKnown:
        registered.length === 0
          ? null
          : {
              from: Math.min(...registered.map(({ at }) => at)),
              to: Math.min(...registered.map(({ end }) => end)),
            },
      leaseMs: LEASE_MS,
      until,
    };
    const violations = check(observed);
    keep = violations.length > 0;
    return summarize(
      {
        seed,
        seconds,
        store: store.kind,
        requests: sender.requests,
        journals: keep ? folder : null,
      },
      faults,
      observed,
      violations,
    );
  } finally {
    if (!keep) await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Waits until nothing is pending or running, or until nothing has ended for a while. Resolves with what the inbox has then.
 * Suspects with several crashes run alone, so after many faults the last of them take their time.
 */
async function settled(
  fleet: ApplicationFleet,
  acknowledged: boolean,
  signal: AbortSignal,
): Promise<ReportedEvent[]> {
  const begin = performance.now();
  let end = begin + (acknowledged ? QUIET_MS : 0);
  let left: number | null = null;
  let fewest = Infinity;
  while (left !== 0 && performance.now() < Math.min(end, begin + RECOVERY_MS)) {
    left = await fleet.ask<number>('unfinished').catch(() => null);
    if (left !== null && left < fewest) {
      fewest = left;
      end = performance.now() + QUIET_MS;
    }
    await setTimeout(100, undefined, { signal });
  }
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await fleet.ask<ReportedEvent[]>('report');
    } catch (error) {
      if (attempt === 20) throw error;
      await setTimeout(500, undefined, { signal });
    }
  }
}

/** Whether it resolves in time, and before `signal` aborts. */
async function within(
  ms: number,
  promise: Promise<unknown>,
  signal: AbortSignal,
): Promise<boolean> {
  const timer = new AbortController();
  const either = AbortSignal.any([signal, timer.signal]);
  const late = setTimeout(ms, false, { signal: either }).catch(() => false);
  const inTime = await Promise.race([promise.then(() => !signal.aborted), late]);
  timer.abort();
  return inTime;
}
