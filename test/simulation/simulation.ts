import type {
  ClaimedDelivery,
  ClaimRequest,
  DeliverySelection,
  Heartbeat,
  IncomingEvent,
  Lease,
  Settlement,
  StoredEvent,
  StoreReceipt,
  SuspectRequest,
  WorkerRegistration,
} from '../../libs/payments/dist/inbox/inbox-store.js';
import { SeededRandom } from '../hostile/seeded-random.ts';
import { COMMITTING } from './behaviour.ts';
import { DeliveryModel } from './delivery-model.ts';
import type { SimulatedDatabase } from './durable-memory-store.ts';
import { faultyStore } from './faulty-store.ts';
import type { StoreObserver } from './faulty-store.ts';
import { RunJournal } from './run-journal.ts';
import { FIRST_VERSION, SECOND_VERSION, SLOTS } from './scenario.ts';
import type { HandlerName, Scenario, Step } from './scenario.ts';
import { CONCURRENCY, SimulatedApplication } from './simulated-application.ts';
import type { ApplicationTimes } from './simulated-application.ts';
import { SimulatedProcess } from './simulated-process.ts';
import type { Timeline } from './virtual-timeline.ts';

/** What a simulation runs on. */
export interface SimulationStage {
  readonly timeline: Timeline;
  readonly database: SimulatedDatabase;
  readonly times: ApplicationTimes;
  /** Whether store operations take effect one at a time, so that every one of them can be checked. */
  readonly exact: boolean;
  /** Moves the wall clock of the store. */
  setWallClock(byMs: number): void;
  /** How long it may take until everything is final once nothing fails any more, in milliseconds. */
  readonly settleMs: number;
  /** Called with each step, each operation that took effect and each run. */
  trace?(line: string): void;
}

/** How much later than its time limit a handler begins at most, in real milliseconds on a busy machine. */
const DISPATCH_MS = 200;
/** How much longer than `drainMs` a drain may take while operations are slow or fail, in milliseconds. */
const DRAIN_MARGIN_MS = 60_000;

interface Slot {
  readonly index: number;
  handlers: readonly HandlerName[];
  starts: number;
  process: SimulatedProcess | null;
  application: SimulatedApplication | null;
}

interface SentEvent {
  readonly company: string;
  readonly id: string;
  readonly body: Buffer;
  acknowledged: boolean;
}

/** Plays a scenario, and finds what must not happen. */
export class Simulation implements StoreObserver {
  readonly #random: SeededRandom;
  readonly #journal: RunJournal;
  readonly #model: DeliveryModel;
  readonly #slots: Slot[] = Array.from({ length: SLOTS }, (_, index) => ({
    index,
    handlers: FIRST_VERSION,
    starts: 0,
    process: null,
    application: null,
  }));
  readonly #sent = new Map<string, SentEvent>();
  readonly #violations: string[] = [];
  readonly #closing: Promise<void>[] = [];
  #ended = false;

  readonly #scenario: Scenario;
  readonly #stage: SimulationStage;

  constructor(scenario: Scenario, stage: SimulationStage) {
    this.#scenario = scenario;
    this.#stage = stage;

    const { times, timeline, database } = stage;
    const now = (): number => timeline.now;
    this.#random = new SeededRandom(scenario.seed);
    this.#journal = new RunJournal(
      (line) => this.#trace(() => line),
      {
        leaseMs: times.leaseMs,
        timeoutMs: times.timeoutMs - (stage.exact ? 0 : DISPATCH_MS),
        concurrency: CONCURRENCY,
      },
      now,
    );
    this.#model = new DeliveryModel(database.store, this.#journal, times.retry.attempts, now);
  }

  /** Ends all processes, and waits until their stores are closed. */
  async end(): Promise<void> {
    this.#ended = true;
    for (const { process } of this.#slots) process?.crash();
    await Promise.all(this.#closing);
  }

  /** Returns what was wrong, the first first; empty if all was right. */
  async run(): Promise<string[]> {
    const { timeline } = this.#stage;
    for (const slot of this.#slots) this.#start(slot);
    for (const step of this.#scenario.steps) {
      this.#trace(() => `step ${shown(step)}`);
      this.#play(step);
      await timeline.run(0);
      if (this.#stage.exact) {
        this.#journal.checkHeartbeats();
        await this.#checkStats();
      }
      if (this.violations.length > 0) return this.violations;
      if (step.step === 'pass time') await timeline.run(step.ms);
    }
    await this.#settle();
    return this.violations;
  }

  get violations(): string[] {
    return [...this.#journal.violations, ...this.#model.violations, ...this.#violations];
  }

  called(process: SimulatedProcess, operation: string): void {
    const claims = operation === 'claim' || operation === 'claimSuspect';
    if (claims && process.draining)
      this.#violations.push(`IN-24 ${process.name} claims while it drains`);
  }

  worked(process: SimulatedProcess, lease: Lease): void {
    if (!this.#stage.exact) this.#journal.committed(process, lease);
  }

  async ended(
    process: SimulatedProcess,
    operation: string,
    parameters: readonly unknown[],
    outcome: { readonly result: unknown } | { readonly error: unknown },
    sentAt: number,
  ): Promise<void> {
    const result = 'result' in outcome ? outcome.result : undefined;
    this.#trace(() => `${process.name} ${operation} ${shown(parameters)} -> ${shown(outcome)}`);
    const done = 'result' in outcome;
    const [first, second] = parameters;
    if (operation === 'register' && done)
      this.#journal.beat((first as WorkerRegistration).id, sentAt);
    if (operation === 'heartbeat' && done && (result as Heartbeat).alive)
      this.#journal.beat(first as string, sentAt);
    if (operation === 'retire' && done) this.#retired(process, first as string, second as number);
    if (operation === 'heartbeat' && done && !(result as Heartbeat).alive) {
      const worker = first as string;
      this.#journal.declaredDead(worker);
      // After the answer has arrived, and the worker has had time to act on it.
      this.#stage.timeline.schedule(50, () =>
        process.deliver(() =>
          process.runtime.schedule(50, () => this.#journal.checkAborted(process, worker)),
        ),
      );
    }
    this.#journalClaims(process, operation, first, result);
    if (operation === 'commit' && done) this.#journal.committed(process, first as Lease);
    if (this.#stage.exact) await this.#observeExactly(operation, parameters, outcome);
  }

  /** A worker that holds nothing is removed at once, whatever its grace. */
  #retired(process: SimulatedProcess, worker: string, graceMs: number): void {
    const removed = this.#stage.exact && !this.#model.holds(worker);
    this.#journal.retired(worker, removed ? 0 : graceMs, process.draining && !removed);
  }

  #trace(line: () => string): void {
    const { timeline } = this.#stage;
    this.#stage.trace?.(`${timeline.now.toFixed(0).padStart(9)} ms  ${line()}`);
  }

  #journalClaims(
    process: SimulatedProcess,
    operation: string,
    request: unknown,
    result: unknown,
  ): void {
    const note = (worker: string, claimed: readonly ClaimedDelivery[], alone: boolean): void => {
      for (const lease of claimed) this.#journal.claimed(process, worker, lease, alone);
    };
    if (operation === 'claim' && result) {
      note((request as ClaimRequest).worker, result as ClaimedDelivery[], false);
    }
    if (operation === 'claimSuspect' && result) {
      const { worker, alone } = request as SuspectRequest;
      note(worker, [result as ClaimedDelivery], alone);
    }
    if (operation === 'receive' && result) {
      (result as StoreReceipt[]).forEach(({ claimed }, index) => {
        note((request as IncomingEvent[])[index]!.assign?.worker ?? '?', claimed, false);
      });
    }
  }

  async #observeExactly(
    operation: string,
    [first, second]: readonly unknown[],
    outcome: { readonly result: unknown } | { readonly error: unknown },
  ): Promise<void> {
    const model = this.#model;
    if (operation === 'commit') {
      const lost = 'error' in outcome && (outcome.error as { code?: string }).code === 'lease_lost';
      if ('result' in outcome) model.settled(first as Lease, 'commit', { settled: true });
      else if (lost) model.settled(first as Lease, 'commit', { settled: false });
      return;
    }
    if ('error' in outcome) return;
    const { result } = outcome;
    switch (operation) {
      case 'receive':
        await model.received(first as IncomingEvent[], result as StoreReceipt[]);
        break;
      case 'claim':
        model.claimed((first as ClaimRequest).worker, result as ClaimedDelivery[], false);
        break;
      case 'claimSuspect': {
        const { worker, alone } = first as SuspectRequest;
        if (result !== null) model.claimed(worker, [result as ClaimedDelivery], alone);
        break;
      }
      case 'complete':
      case 'release':
        model.settled(first as Lease, operation, result as Settlement);
        break;
      case 'fail': {
        const failure = second as { readonly retryInMs: number | null; readonly error: string };
        model.settled(first as Lease, failure, result as Settlement);
        break;
      }
      case 'redrive': {
        const { force } = second as { readonly force: boolean };
        await model.operated(first as DeliverySelection[], force ? 'redrive by force' : 'redrive');
        break;
      }
      case 'skip':
        await model.operated(first as DeliverySelection[], 'skip');
        break;
      case 'forgetHandler':
        if (result !== null) model.forgotten(first as string);
        break;
      default:
    }
  }

  #play(step: Step): void {
    const slotOf = (index: number): Slot => this.#slots[index]!;
    switch (step.step) {
      case 'send':
        this.#send(step.event, '', step.to);
        break;
      case 'send under another id':
        this.#send(step.event, '-again', step.to);
        break;
      case 'pass time':
        break;
      case 'fault':
        slotOf(step.in).process?.addFault(step.fault);
        break;
      case 'outage':
        for (const { index, process } of this.#slots) {
          if (step.in === 'all' || step.in === index) process?.cutOffFor(step.ms);
        }
        break;
      case 'crash':
        slotOf(step.in).process?.crash();
        break;
      case 'freeze':
        slotOf(step.in).process?.pauseFor(step.ms);
        break;
      case 'drain and restart':
        this.#drain(slotOf(step.in), step.deploy ? SECOND_VERSION : FIRST_VERSION);
        break;
      case 'pause':
      case 'resume': {
        const { step: action, handler } = step;
        this.#operate(step.in, (inbox) => inbox[action](handler));
        break;
      }
      case 'redrive': {
        const ids = step.event === 'dead' ? null : [this.#planned(step.event, '').id];
        const query = step.force
          ? { force: true, state: 'done' as const }
          : { state: 'dead' as const };
        this.#operate(step.in, (inbox) => inbox.redrive({ ...query, ...(ids && { ids }) }));
        break;
      }
      case 'skip':
        this.#operate(step.in, (inbox) =>
          inbox.skip({ ids: [this.#planned(step.event, '').id], state: 'pending' }),
        );
        break;
      case 'forget':
        this.#operate(step.in, (inbox) => inbox.forgetHandler(step.handler));
        break;
      case 'set the wall clock':
        this.#stage.setWallClock(step.byMs);
        break;
    }
  }

  /** What an operator does, in a process that is up. It may fail; what it changed is checked. */
  #operate(index: number, act: (inbox: SimulatedApplication['inbox']) => Promise<unknown>): void {
    const { application } = this.#slots[index]!;
    if (application?.started) act(application.inbox).catch(() => {});
  }

  #start(slot: Slot): void {
    const { timeline, database, times } = this.#stage;
    slot.starts += 1;
    const random = new SeededRandom(this.#random.between(0, 2 ** 31));
    const skewMs = [0, 600_000, -600_000][slot.index]!;
    const process = new SimulatedProcess(`p${slot.index}.${slot.starts}`, timeline, random, skewMs);
    const opened = database.connect(process.runtime);
    const store = faultyStore(opened, process, this, times.slowMs);
    const application = new SimulatedApplication(
      process,
      store,
      database,
      slot.handlers,
      times,
      this.#journal,
    );
    slot.process = process;
    slot.application = application;
    process.onDeath(() => {
      slot.process = null;
      slot.application = null;
      if (opened !== database.store) this.#closing.push(opened.close().catch(() => {}));
      if (this.#ended) return;
      timeline.schedule(times.downMs, () => {
        if (slot.process === null && !this.#ended) this.#start(slot);
      });
    });
    // An application whose store cannot be opened does not start.
    application.start().catch(() => process.crash());
  }

  /** A rolling deploy: the process drains and ends, and the next version starts. */
  #drain(slot: Slot, next: readonly HandlerName[]): void {
    const { process, application } = slot;
    const { timeline } = this.#stage;
    if (process === null || !application?.started || process.draining) return;
    slot.handlers = next;
    const cancel = this.#watchDrain(process);
    void application.drain().then(
      () => {
        cancel();
        // Servers and databases close meanwhile.
        timeline.schedule(this.#stage.times.closingMs, () => process.crash());
      },
      (error: unknown) =>
        this.#violations.push(`IN-24 the drain of ${process.name} failed: ${String(error)}`),
    );
  }

  /** A drain ends, unless the process is paused. Returns a function that stops watching. */
  #watchDrain(process: SimulatedProcess): () => void {
    const limitMs = this.#stage.times.drainMs + DRAIN_MARGIN_MS;
    let cancel = (): void => {};
    const watch = (ms: number): void => {
      cancel = process.runtime.schedule(ms, () => {
        if (process.awakeMs < limitMs) watch(limitMs - process.awakeMs);
        else this.#violations.push(`IN-24 ${process.name} still drains`);
      });
    };
    watch(limitMs);
    return () => cancel();
  }

  #planned(index: number, suffix: string): { company: string; id: string; body: Buffer } {
    const { events } = this.#scenario;
    const number = index % events.length;
    const { company, eventType, transactionId, scripts } = events[number]!;
    const id = `e${number}${suffix}`;
    const timestamp = new Date(Date.UTC(2026, 0, 1) + number).toISOString();
    const data = { ...(transactionId !== null && { transactionId }), scripts };
    return { company, id, body: Buffer.from(JSON.stringify({ id, eventType, timestamp, data })) };
  }

  #send(index: number, suffix: string, to: number): void {
    const { company, id, body } = this.#planned(index, suffix);
    const key = `${company}/${id}`;
    const sent = this.#sent.get(key) ?? { company, id, body, acknowledged: false };
    this.#sent.set(key, sent);
    this.#deliver(sent, to);
  }

  /** Sends a delivery until it is acknowledged, to one process after the other. */
  #deliver(sent: SentEvent, to: number): void {
    const { application } = this.#slots[to % SLOTS]!;
    const resend = this.#stage.timeline.schedule(this.#stage.times.resendMs, () => {
      if (!sent.acknowledged) this.#deliver(sent, to + 1);
    });
    if (!application?.started) return;
    application.receive(sent.company, sent.body).then(
      () => {
        sent.acknowledged = true;
        resend();
      },
      () => {},
    );
  }

  /** Nothing fails any more, all processes run the last version, and time passes: everything must become final. */
  async #settle(): Promise<void> {
    const { timeline, database, settleMs } = this.#stage;
    for (const { process } of this.#slots) process?.heal();
    const up = (): boolean => this.#slots.every(({ application }) => application?.started ?? false);
    await timeline.until(up, settleMs);
    const { handlers } = await database.store.catalog();
    const deployed = handlers.some(({ name }) => name === 'audit');
    for (const slot of this.#slots) {
      if (!slot.handlers.includes('audit') && deployed) this.#drain(slot, SECOND_VERSION);
      if (deployed) slot.handlers = SECOND_VERSION;
    }
    const allSent = (): boolean =>
      [...this.#sent.values()].every(({ acknowledged }) => acknowledged);
    const final = async (): Promise<boolean> => {
      for (const { process } of this.#slots) process?.heal();
      if (this.#stage.exact) this.#journal.checkHeartbeats();
      if (this.violations.length > 0) return true;
      const { deliveries, paused } = await database.store.stats();
      // An operator's last action may still be on its way.
      for (const handler of paused) await database.store.pause(handler, false);
      return allSent() && deliveries.every(({ state }) => state === 'dead');
    };
    const settled = await timeline.until(final, settleMs);
    if (this.violations.length > 0) return;
    const events = await this.#stored();
    if (!allSent())
      this.#violations.push('deliveries are not acknowledged though nothing fails any more');
    else if (!settled)
      this.#violations.push(`nothing fails any more, and these are stuck: ${stuck(events)}`);
    await this.#checkStats();
    if (this.#stage.exact) await this.#model.checkStored();
    await this.#checkEffects(events);
  }

  async #stored(): Promise<readonly StoredEvent[]> {
    const { store } = this.#stage.database;
    return (await store.list({ filter: {}, order: 'oldest', limit: 1000, after: null })).events;
  }

  /** Counts equal rows. */
  async #checkStats(): Promise<void> {
    const counted = new Map<string, number>();
    for (const { deliveries } of await this.#stored()) {
      for (const { handler, state } of deliveries) {
        const key = `${handler} ${state}`;
        if (state !== 'done' && state !== 'skipped') counted.set(key, (counted.get(key) ?? 0) + 1);
      }
    }
    const { deliveries } = await this.#stage.database.store.stats();
    const stats = deliveries.map(({ handler, state, count }) => `${handler} ${state} ${count}`);
    const rows = [...counted].map(([key, count]) => `${key} ${count}`);
    if (stats.toSorted().join() !== rows.toSorted().join()) {
      this.#violations.push(
        `IN-28 stats() says ${stats.join(', ')}, and the rows are ${rows.join(', ')}`,
      );
    }
  }

  /** Effects of commits exist once, and those of done deliveries that only ever commit exist. */
  async #checkEffects(events: readonly StoredEvent[]): Promise<void> {
    const times = new Map<string, number>();
    for (const effect of await this.#stage.database.effects()) {
      times.set(effect, (times.get(effect) ?? 0) + 1);
    }
    for (const { company, id, deliveries } of events) {
      const plan = this.#scenario.events[Number.parseInt(id.slice(1))]!;
      for (const { handler, state } of deliveries) {
        const key = `${company}/${id}/${handler}`;
        const count = times.get(key) ?? 0;
        const forced = this.#forced(company, id, handler);
        if (count > 1 + forced)
          this.#violations.push(`IN-21 the effect of ${key} exists ${count} times`);
        const commits = plan.scripts[handler as HandlerName].every((one) => COMMITTING.has(one));
        if (state === 'done' && commits && count === 0) {
          this.#violations.push(`IN-22 ${key} is done without its effect`);
        }
      }
    }
  }

  #forced(company: string, id: string, handler: string): number {
    if (this.#stage.exact) return this.#model.get(company, id, handler)?.forced ?? 0;
    return this.#scenario.steps.filter((step) => step.step === 'redrive' && step.force).length;
  }
}

function shown(value: unknown): string {
  const text = JSON.stringify(value, (key, one: unknown) => (key === 'raw' ? undefined : one));
  return text === undefined ? 'nothing' : text.slice(0, 600);
}

function stuck(events: readonly StoredEvent[]): string {
  return events
    .flatMap(({ company, id, deliveries }) =>
      deliveries
        .filter(({ state }) => state === 'pending' || state === 'running')
        .map(
          ({ handler, state, attempts }) => `${company}/${id}/${handler} ${state} (${attempts})`,
        ),
    )
    .join(', ');
}
