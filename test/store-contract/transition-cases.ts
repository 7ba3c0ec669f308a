import { deepEqual, equal, ok } from 'node:assert/strict';
import type { InboxStore, Lease } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import {
  forgetHandler,
  idsOf,
  incoming,
  LEASE_MS,
  listAll,
  REDRIVE_FORCED,
  REDRIVE_NOW,
  seededRandom,
  select,
  TestWorker,
  twoWorkers,
} from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';
import { DELIVERY_TRANSITIONS } from './transitions.ts';

const HANDLERS = ['book', 'mail', 'gone'];

/** The transitions of deliveries whose process died, which a store of one process does not have. */
const OF_SEVERAL_PROCESSES = ['claimSuspect', 'heartbeat (worker dead)'];

/** Records the changes of deliveries' states, and fails if a change is not in `DELIVERY_TRANSITIONS`. */
class TransitionRecorder {
  readonly seen = new Set<string>();
  #states = new Map<string, string>();

  constructor(private readonly store: InboxStore) {}

  /** Runs one operation. Every change that it makes must be a transition by this operation. */
  async during<T>(operation: string, run: () => Promise<T>): Promise<T> {
    const result = await run();
    const now = await this.#read();
    for (const [delivery, to] of now) {
      const from = this.#states.get(delivery) ?? 'new';
      if (from === to) continue;
      const found = DELIVERY_TRANSITIONS.filter(
        (known) => known.from === from && known.to === to && known.by.split(' ')[0] === operation,
      );
      equal(found.length, 1, `${operation} changed a delivery from ${from} to ${to}`);
      this.seen.add(`${from} > ${to} by ${found[0]!.by}`);
    }
    this.#states = now;
    return result;
  }

  async #read(): Promise<Map<string, string>> {
    const events = await listAll(this.store);
    return new Map(
      events.flatMap(({ id, deliveries }) =>
        deliveries.map(({ handler, state }) => [`${id} ${handler}`, state]),
      ),
    );
  }
}

/** Random operations of two workers that change deliveries. The seed decides their order. */
class Interleaving {
  readonly #random: () => number;
  readonly #recorder: TransitionRecorder;
  #workers: TestWorker[] = [];
  #leases: Lease[] = [];
  #ids: string[] = [];

  constructor(
    private readonly stores: readonly InboxStore[],
    private readonly advance: (ms: number) => Promise<void>,
    seed: number,
  ) {
    this.#random = seededRandom(seed);
    this.#recorder = new TransitionRecorder(stores[0]!);
  }

  async run(steps: number): Promise<void> {
    this.#workers = await Promise.all(this.stores.map((store) => TestWorker.start(store)));
    const store = () => this.#pick(this.stores);
    const selectAny = (handlers: string[]) => select(this.#pick(this.#ids) ?? 'none', ...handlers);
    const redrive = () => {
      const options = { force: this.#random() < 0.5, dueInMs: [this.#pick([0, 5000])] };
      return store().redrive(selectAny(HANDLERS), options);
    };
    const actions: (() => Promise<unknown>)[] = [
      ...Array.from({ length: 2 }, () => () => this.#receive()),
      ...Array.from({ length: 3 }, () => () => this.#claim()),
      ...Array.from({ length: 3 }, () => () => this.#settle()),
      () => this.#claimSuspect(),
      () => this.#crash(),
      () => this.#during('redrive', redrive),
      () => this.#during('skip', () => store().skip(selectAny([this.#pick(HANDLERS)]))),
      () => this.#during('skip', () => forgetHandler(store(), 'gone')),
      () => store().pause(this.#pick(HANDLERS), this.#random() < 0.3),
    ];
    for (let step = 0; step < steps; step += 1) {
      await this.#pick(actions)();
      await this.#checkKeys();
    }
    await this.#finish();
  }

  /** Settles everything. In the end all deliveries are done, dead or skipped: none waits for ever. */
  async #finish(): Promise<void> {
    const [store] = this.stores;
    for (const handler of ['*', ...HANDLERS]) await store!.pause(handler, false);
    const [worker] = this.#workers;
    for (let idle = 0; idle < 2;) {
      for (const lease of this.#leases) await store!.complete(lease);
      const dueInMs = await store!.nextDueInMs(HANDLERS);
      const suspect = await worker!.claimSuspect(HANDLERS);
      if (dueInMs !== null && dueInMs > 0) await this.advance(dueInMs);
      this.#leases = await worker!.claim(HANDLERS, 1000);
      if (suspect) this.#leases.push(suspect);
      idle = this.#leases.length === 0 ? idle + 1 : 0;
      await worker!.declareOthersDead(this.advance);
    }
    const { deliveries } = await store!.stats();
    const unfinished = deliveries.filter(({ state }) => state !== 'dead');
    deepEqual(unfinished, []);
  }

  /** At most one delivery of each handler and ordering key runs. */
  async #checkKeys(): Promise<void> {
    const running = await listAll(this.stores[0]!, { state: 'running' });
    const keys = running.flatMap(({ orderingKey, deliveries }) =>
      deliveries.flatMap(({ state, handler }) =>
        state === 'running' && orderingKey !== null ? [`${handler} ${orderingKey}`] : [],
      ),
    );
    equal(new Set(keys).size, keys.length, 'two deliveries of one key run');
  }

  async #receive(): Promise<void> {
    const worker = this.#pick(this.#workers);
    const events = Array.from({ length: 1 + Math.floor(this.#random() * 3) }, () => {
      const handlers = HANDLERS.filter(() => this.#random() < 0.6);
      const orderingKey = this.#random() < 0.8 ? this.#pick(['a', 'b', 'c']) : null;
      const assign = this.#random() < 0.4 ? { workerId: worker.id, handlers } : null;
      return incoming({ handlers, orderingKey, assign, catalogVersion: 0 });
    });
    this.#ids.push(...idsOf(events));
    const receipts = await this.#during('receive', () => worker.store.receive(events));
    this.#leases.push(...receipts.flatMap(({ claimed }) => claimed));
  }

  async #claim(): Promise<void> {
    const worker = this.#pick(this.#workers);
    const limit = 1 + Math.floor(this.#random() * 3);
    const wanted = HANDLERS.map((handler) => ({ handler, limit }));
    const claim = () => worker.store.claim({ workerId: worker.id, wanted });
    this.#leases.push(...(await this.#during('claim', claim)));
  }

  async #claimSuspect(): Promise<void> {
    const worker = this.#pick(this.#workers);
    const suspect = await this.#during('claimSuspect', () => worker.claimSuspect(HANDLERS));
    if (suspect) this.#leases.push(suspect);
  }

  async #settle(): Promise<void> {
    const store = this.#pick(this.stores);
    const [lease] = this.#leases.splice(Math.floor(this.#random() * this.#leases.length), 1);
    if (lease === undefined) return;
    const chance = this.#random();
    if (chance < 0.2 && store.capabilities.transactional) {
      await this.#during('commit', () => store.commit(lease, () => {}).catch(() => {}));
    } else if (chance < 0.5) {
      await this.#during('complete', () => store.complete(lease));
    } else if (chance < 0.8) {
      const retryInMs = this.#pick([null, 0, 5000, 60_000]);
      await this.#during('fail', () => store.fail(lease, { error: 'no', retryInMs }));
    } else {
      const dueInMs = this.#pick([0, 5000]);
      await this.#during('release', () => store.release(lease, dueInMs));
    }
  }

  /** One process dies, the other one declares it dead, and a new process replaces it. Or only some time passes. */
  async #crash(): Promise<void> {
    if (this.#random() < 0.6) return this.advance(Math.floor(this.#random() * 8000));
    const index = Math.floor(this.#random() * this.#workers.length);
    const observer = this.#workers[1 - index]!;
    await observer.heartbeat();
    await this.advance(LEASE_MS + 1000);
    equal((await this.#during('heartbeat', () => observer.heartbeat())).alive, true);
    this.#workers[index] = await TestWorker.start(this.stores[index]!);
  }

  #during<T>(operation: string, run: () => Promise<T>): Promise<T> {
    return this.#recorder.during(operation, run);
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random() * from.length)]!;
  }
}

/** The changes of a delivery's state, one by one and in random order. */
export const transitionCases: readonly InboxContractCase[] = [
  {
    title: 'deliveries change state by every transition in DELIVERY_TRANSITIONS, and by no other',
    async run({ store, another, advance }) {
      const recorder = new TransitionRecorder(store);
      const during: TransitionRecorder['during'] = (...call) => recorder.during(...call);
      const [worker, other] = await twoWorkers({ store, another });
      const assign = { workerId: worker.id, handlers: ['book'] };
      const [event, assigned] = [incoming(), incoming({ assign })];
      const claim = () => during('claim', () => worker.claimOne());
      const redrive = (id: string, handler = 'book', options = REDRIVE_NOW) =>
        during('redrive', () => store.redrive(select(id, handler), options));

      const receipts = await during('receive', () => store.receive([event, assigned]));
      await during('heartbeat', () => other.heartbeat());
      await during('release', async () => store.release(await claim()));
      const failed = await claim();
      await during('fail', () => store.fail(failed, { error: 'no', retryInMs: 0 }));
      const dead = await claim();
      await during('fail', () => store.fail(dead, { error: 'no', retryInMs: null }));
      await redrive(event.id);
      const done = await claim();
      await during('complete', () => store.complete(done));
      await redrive(event.id, 'book', REDRIVE_FORCED);
      await during('skip', () => store.skip(select(event.id)));
      await redrive(event.id);
      const again = await claim();
      await during('fail', () => store.fail(again, { error: 'no', retryInMs: null }));
      await during('skip', () => store.skip(select(event.id)));
      const { transactional, shared } = store.capabilities;
      let running = receipts[1]!.claimed[0]!;
      if (shared) {
        // The worker dies while the assigned delivery runs.
        await during('heartbeat', () => other.declareOthersDead(advance));
        running = (await during('claimSuspect', () => other.claimSuspect()))!;
      }
      equal(running.id, assigned.id);
      if (transactional) await during('commit', () => other.store.commit(running, () => {}));
      else await during('complete', () => other.store.complete(running));
      await redrive(event.id, 'gone');
      await redrive(assigned.id, 'gone');
      const gone = await during('claim', () => other.claim(['gone'], 1));
      await during('fail', () => store.fail(gone[0]!, { error: 'no', retryInMs: null }));
      equal(await during('skip', () => forgetHandler(store, 'gone')), 2);

      const expected = DELIVERY_TRANSITIONS.filter(
        ({ by }) =>
          (transactional || by !== 'commit') && (shared || !OF_SEVERAL_PROCESSES.includes(by)),
      );
      const names = expected.map(({ from, to, by }) => `${from} > ${to} by ${by}`);
      ok(names.length >= 13);
      deepEqual([...recorder.seen].toSorted(), names.toSorted());
    },
  },
  ...[1, 2].map((seed): InboxContractCase => ({
    title: `IN-16 IN-35 120 random operations of two workers leave no delivery unfinished (seed ${seed})`,
    async run({ store, another, advance }) {
      await new Interleaving([store, await another()], advance, seed).run(120);
    },
  })),
];
