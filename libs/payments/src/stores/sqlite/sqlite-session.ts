import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { CommitResult, Lease } from '../../inbox/store/inbox-store.js';
import { SqliteMemory } from './sqlite-memory.js';
import type { MemoryDatabase } from './sqlite-memory.js';
import { SqliteFile } from './sqlite-file.js';
import type { EngineHooks, SqliteEngine } from './sqlite-engine.js';
import type { ArgumentsOf, OperationName, ResultOf } from './sqlite-operations.js';
import { MEMORY } from './sqlite-options.js';
import type { SqliteSettings } from './sqlite-options.js';
import type { SqliteTransaction } from './sqlite-transaction.js';
import { machineMs, unavailable } from './thread/connection.js';
import type { StoredClock, Times } from './thread/connection.js';

/** A database while a store uses it, with the clock of the store and its listeners for new deliveries. */
export class SqliteSession {
  readonly #listeners = new Set<() => void>();
  readonly #clock: StoreClock;
  readonly #engine: SqliteEngine;
  #stage: 'new' | 'open' | 'closed' = 'new';

  constructor(settings: SqliteSettings, runtime: PaymentsRuntime, memory?: MemoryDatabase) {
    const hooks: EngineHooks = {
      times: () => this.#clock.read(),
      onWake: () => this.#wake(),
      onClock: (clock) => this.#clock.advanceTo(clock),
    };
    const inMemory = settings.file === MEMORY;
    this.#clock = new StoreClock(runtime, inMemory ? () => 0 : machineMs);
    this.#engine = inMemory ? new SqliteMemory(hooks, memory) : new SqliteFile(settings, hooks);
  }

  async open(): Promise<void> {
    this.#clock.start(await this.#engine.open());
    this.#stage = 'open';
    // Stores this process's clock for the other processes. If that fails, the first write stores the clock.
    this.run('sync').catch(() => {});
  }

  async close(): Promise<void> {
    this.#stage = 'closed';
    await this.#engine.close();
    this.#listeners.clear();
  }

  async run<Name extends OperationName>(
    name: Name,
    ...args: ArgumentsOf<Name>
  ): Promise<ResultOf<Name>> {
    this.#check();
    return this.#engine.run(name, ...args);
  }

  async commit<R>(lease: Lease, work: (tx: SqliteTransaction) => R): Promise<CommitResult<R>> {
    this.#check();
    return this.#engine.commit(lease, work);
  }

  /** The time by the clocks of this process. */
  times(): Times {
    this.#check();
    return this.#clock.read();
  }

  onWake(listener: () => void): () => void {
    // A new function for each call, because a Set would keep a listener that is added twice only once.
    const added = (): void => listener();
    if (this.#listeners.size === 0) this.#engine.listen(true);
    this.#listeners.add(added);
    return () => {
      if (this.#listeners.delete(added) && this.#listeners.size === 0) this.#engine.listen(false);
    };
  }

  #wake(): void {
    for (const listener of this.#listeners) listener();
  }

  #check(): void {
    if (this.#stage === 'new') throw unavailable('is not open yet.');
    if (this.#stage === 'closed') throw unavailable('is closed.');
  }
}

/**
 * The store clock of one process: monotonic, so that a jump of the wall clock neither delays a delivery nor makes it
 * due. The process continues the clock in the file. It uses the wall clock only for the time since the clock was
 * stored.
 */
export class StoreClock {
  #offset: number | undefined;

  constructor(
    private readonly runtime: PaymentsRuntime,
    private readonly machine: () => number = machineMs,
  ) {}

  /** Continues the stored clock. Only the first call has an effect. */
  start(stored: StoredClock): void {
    if (this.#offset !== undefined) return;
    const wall = Math.floor(this.runtime.now());
    const clock = stored.wall === 0 ? wall : stored.clock + Math.max(0, wall - stored.wall);
    this.#offset = clock - Math.floor(this.runtime.monotonic());
  }

  /** Sets the clock forward to the clock of another process; never back. */
  advanceTo(clock: number): void {
    const behind = clock - this.read().clock;
    if (behind > 0) this.#offset = (this.#offset ?? 0) + behind;
  }

  read(): Times {
    const monotonic = this.runtime.monotonic();
    const wall = Math.floor(this.runtime.now());
    const clock = Math.floor(monotonic) + (this.#offset ?? 0);
    return { wall, clock, processOffset: monotonic - this.machine() };
  }
}
