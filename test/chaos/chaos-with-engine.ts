import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { EngineName } from 'test-postgres/engines/create-engine-adapter';
import { ApplicationFleet } from './application-fleet.js';
import { monotonicMs } from './application-protocol.js';
import type { ReportedEvent } from './application-protocol.js';
import { recordsOf, requestUntilAnswered, untilHandled, untilInjected, within } from './chaos.js';
import type { ChaosOptions } from './chaos.js';
import { openEngine } from './chaos-engine.js';
import { openPostgres } from './chaos-store.js';
import { check } from './checker.js';
import type { Observations } from './checker.js';
import { planEvents } from './event-plan.js';
import { FaultInjector } from './fault-injector.js';
import { planFaults } from './fault-plan.js';
import { summarize } from './report.js';
import type { ChaosResult } from './report.js';
import { SeededRandom } from './seeded-random.js';
import { Sender } from './sender.js';

/** The worker services. */
const SERVICES = ['ledger', 'mail'] as const;
/** All applications. The first one receives the events. */
const APPLICATIONS = ['gateway', ...SERVICES] as const;
/** Processes of each application. */
const PROCESSES = 2;
const LEASE_MS = 1000;
const DRAIN_MS = 1000;
/** The mean number of events that `planEvents()` plans at a time: some transactions have several. */
const EVENTS_AT_A_TIME = 1.34;
const WEBHOOK_SECRET = 'whsec_chaos';
/** The maximum time that six processes may take to start, in milliseconds. */
const START_MS = 180_000;
/** The maximum time that the last copies may take to be acknowledged after the faults, in milliseconds. */
const SENDING_MS = 60_000;
/**
 * The maximum time after the faults, and the part of it without any progress, in milliseconds: a handover that failed
 * several times waits for minutes.
 */
const RECOVERY = { limitMs: 3_600_000, quietMs: 180_000 };

/** Options of a chaos run with an engine. */
export interface EngineChaosOptions extends Pick<
  ChaosOptions,
  'seed' | 'seconds' | 'application' | 'signal'
> {
  readonly engine: EngineName;
  /** About how many events are sent per second. */
  readonly rate: number;
}

/**
 * Sends events to a gateway that hands them over to an engine, from which two services take them, while it injects faults
 * into the processes, their databases and the engine. Waits until everything is handled, and checks every event in each
 * application. It leaves no process running. If a promise was broken, it keeps the journals of the processes.
 */
export async function runEngineChaos(options: EngineChaosOptions): Promise<ChaosResult[]> {
  const { seed, seconds, rate, signal } = options;
  const folder = await mkdtemp(path.join(tmpdir(), 'payments-chaos-journals-'));
  const timeUp = new AbortController();
  const stopped = AbortSignal.any([signal, timeUp.signal]);
  let keep = false;
  try {
    const size = { fleets: APPLICATIONS.length, processes: PROCESSES };
    await using engine = await openEngine(options.engine, size);
    await using applications = new AsyncDisposableStack();
    const started = await Promise.all(
      APPLICATIONS.map(async (name, index) => {
        const store = applications.use(await openPostgres(PROCESSES));
        await mkdir(path.join(folder, name));
        const urls = engine.urls(index);
        const service = name === 'gateway' ? null : name;
        const fleet = new ApplicationFleet({
          file: options.application,
          count: PROCESSES,
          folder: path.join(folder, name),
          setup: {
            store: 'postgres',
            webhookSecret: WEBHOOK_SECRET,
            // No application calls the payments service.
            serviceUrl: 'http://127.0.0.1:9',
            leaseMs: LEASE_MS,
            drainMs: DRAIN_MS,
          },
          database: (target) => store.database(target),
          engine: (target) => ({
            engine: options.engine,
            url: urls[target]!,
            services: SERVICES,
            ...(service !== null && { service }),
          }),
        });
        applications.use(fleet);
        const injector = new FaultInjector(fleet, store, engine.faults(index));
        return { name, service, fleet, store, injector };
      }),
    );
    const fleets = started.map(({ fleet }) => fleet);
    await Promise.all(fleets.map((fleet) => fleet.ready(START_MS)));
    // A service stores each event that the gateway stored. An event that kills each process may be a dead letter.
    const events = planEvents(new SeededRandom(seed, 'events'), {
      seconds,
      processes: PROCESSES,
      perSecond: rate / EVENTS_AT_A_TIME,
    }).filter(({ poisoned }) => poisoned.length === 0);
    const faults = planFaults(new SeededRandom(seed, 'faults'), {
      store: 'engine',
      seconds,
      processes: APPLICATIONS.length * PROCESSES,
      leaseMs: LEASE_MS,
    });
    const plans = started.map((_, index) =>
      faults
        .filter(({ target }) => Math.floor(target / PROCESSES) === index)
        .map((fault) => Object.assign(fault, { target: fault.target % PROCESSES })),
    );
    const sender = new Sender((target) => fleets[0]!.url(target), WEBHOOK_SECRET);
    const injecting = Promise.all(
      started.map(({ injector }, index) => injector.inject(plans[index]!, stopped)),
    );
    const sending = sender.send(events, stopped);
    const injectors = started.map(({ injector }) => injector);
    await untilInjected(injecting, injectors, options);
    await within(SENDING_MS, sending, signal);
    const left = () => Promise.all(SERVICES.map((service) => engine.left(service)));
    await untilHandled(
      async () => {
        const busy = await unfinished(fleets);
        if (busy > 0) return busy;
        const waiting = (await left()).reduce((sum, { waiting }) => sum + waiting, 0);
        // A message that left the engine meanwhile is now in the inbox of its service.
        return waiting > 0 ? waiting : unfinished(fleets);
      },
      signal,
      RECOVERY,
    );
    timeUp.abort();
    const stored = await Promise.all(
      fleets.map((fleet) => requestUntilAnswered<ReportedEvent>('report', fleet, signal)),
    );
    const leftMessages = await left();
    const until = monotonicMs();
    await Promise.all(fleets.map((fleet) => fleet[Symbol.asyncDispose]()));
    const effects = await Promise.all(started.map(({ store }) => store.effects()));
    const handedOver = new Set(stored[0]!.map(({ id }) => id));
    const observations = started.map(({ service, fleet, injector }, index): Observations => ({
      // The gateway runs no handler with an effect. A service gets no event that the gateway recorded as a duplicate.
      events:
        service === null
          ? events.map((event) => ({ ...event, handlers: [] }))
          : events.filter(({ id }) => handedOver.has(id)),
      payments: null,
      sent: sender.sent,
      effects: effects[index]!,
      stored: stored[index]!,
      processes: recordsOf(fleet),
      exits: fleet.exits,
      faults: injector.injected,
      lateDrains: injector.lateDrains,
      newHandlerKnown: null,
      leaseMs: LEASE_MS,
      left: service === null ? null : leftMessages[SERVICES.indexOf(service)]!,
      until,
    }));
    const found = observations.map((observed) => check(observed));
    keep = found.flat().length > 0;
    return started.map(({ name }, index) =>
      summarize(
        { seed, seconds, store: name, journals: keep ? folder : null, requests: sender.requests },
        plans[index]!,
        observations[index]!,
        found[index]!,
      ),
    );
  } finally {
    timeUp.abort();
    if (!keep) await rm(folder, { recursive: true, force: true });
  }
}

/** The number of deliveries of all applications that are pending or running. */
async function unfinished(fleets: readonly ApplicationFleet[]): Promise<number> {
  const counts = await Promise.all(fleets.map((fleet) => fleet.request<number>('unfinished')));
  return counts.reduce((sum, count) => sum + count, 0);
}
