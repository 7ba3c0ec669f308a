import type { SimulatedDatabase } from './simulated-database.ts';
import { faultyStore } from './faulty-store.ts';
import type { SimulatedService } from './simulated-service.ts';
import type { StoreObserver } from './faulty-store.ts';
import type { AttemptJournal } from './attempt-journal.ts';
import { FIRST_VERSION, SLOTS } from './scenario.ts';
import type { HandlerName } from './scenario.ts';
import { SeededRandom } from '../chaos/seeded-random.ts';
import { SimulatedApplication } from './simulated-application.ts';
import type { ApplicationTimes } from './simulated-application.ts';
import { SimulatedProcess } from './simulated-process.ts';
import type { Timeline } from './virtual-timeline.ts';

/** The additional time that a drain may take after `drainMs`, because operations are slow or fail, in milliseconds. */
const DRAIN_MARGIN_MS = 60_000;

/** The place of one process. When the process ends, a new process takes its place. */
export interface Slot {
  readonly index: number;
  handlers: readonly HandlerName[];
  starts: number;
  process: SimulatedProcess | null;
  application: SimulatedApplication | null;
}

/** The processes of the application, which share one database. */
export class ProcessFleet {
  readonly violations: string[] = [];
  readonly slots: readonly Slot[] = Array.from({ length: SLOTS }, (_, index) => ({
    index,
    handlers: FIRST_VERSION,
    starts: 0,
    process: null,
    application: null,
  }));
  readonly #closing: Promise<void>[] = [];
  #ended = false;
  readonly #timeline: Timeline;
  readonly #database: SimulatedDatabase;
  readonly #times: ApplicationTimes;
  readonly #random: SeededRandom;
  readonly #journal: AttemptJournal;
  readonly #observer: StoreObserver;
  readonly #service: SimulatedService;

  constructor(
    setup: {
      readonly timeline: Timeline;
      readonly database: SimulatedDatabase;
      readonly times: ApplicationTimes;
    },
    random: SeededRandom,
    journal: AttemptJournal,
    observer: StoreObserver,
    service: SimulatedService,
  ) {
    this.#timeline = setup.timeline;
    this.#database = setup.database;
    this.#times = setup.times;
    this.#random = random;
    this.#journal = journal;
    this.#observer = observer;
    this.#service = service;
  }

  /** Ends all processes, and waits until their stores are closed. */
  async end(): Promise<void> {
    this.#ended = true;
    for (const { process } of this.slots) process?.crash();
    await Promise.all(this.#closing);
  }

  start(slot: Slot): void {
    const timeline = this.#timeline;
    const database = this.#database;
    const times = this.#times;
    slot.starts += 1;
    const random = new SeededRandom(this.#random.between(0, 2 ** 31));
    const skewMs = [0, 600_000, -600_000][slot.index]!;
    const process = new SimulatedProcess(`p${slot.index}.${slot.starts}`, timeline, random, skewMs);
    const opened = database.connect(process.runtime);
    const store = faultyStore(opened, process, this.#observer, times.slowMs);
    const application = new SimulatedApplication(
      process,
      store,
      database,
      slot.handlers,
      times,
      this.#journal,
      this.#service,
    );
    slot.process = process;
    slot.application = application;
    process.onDeath(() => {
      slot.process = null;
      slot.application = null;
      if (opened !== database.store) this.#closing.push(opened.close().catch(() => {}));
      if (this.#ended) return;
      timeline.schedule(times.downMs, () => {
        if (slot.process === null && !this.#ended) this.start(slot);
      });
    });
    // An application does not start if its store cannot be opened.
    application.start().catch(() => process.crash());
  }

  /** Deploys the next version: the process drains and ends, and a process of the next version starts. */
  drain(slot: Slot, next: readonly HandlerName[]): void {
    const { process, application } = slot;
    const timeline = this.#timeline;
    if (process === null || !application?.started || process.draining) return;
    slot.handlers = next;
    const cancel = this.#watchDrain(process);
    void application.drain().then(
      () => {
        cancel();
        // The HTTP server and other providers close during this time.
        timeline.schedule(this.#times.closingMs, () => process.crash());
      },
      (error: unknown) =>
        this.violations.push(`IN-24 the drain of ${process.name} failed: ${String(error)}`),
    );
  }

  /** Adds a violation if a drain does not end in time, unless the process is paused. Returns a function that stops the check. */
  #watchDrain(process: SimulatedProcess): () => void {
    const limitMs = this.#times.drainMs + DRAIN_MARGIN_MS;
    let cancel = (): void => {};
    const watch = (ms: number): void => {
      cancel = process.runtime.schedule(ms, () => {
        if (process.awakeMs < limitMs) watch(limitMs - process.awakeMs);
        else this.violations.push(`IN-24 the drain of ${process.name} has not ended in time`);
      });
    };
    watch(limitMs);
    return () => cancel();
  }
}
