import { deepEqual, equal } from 'node:assert/strict';
import type { ClaimedDelivery, InboxStore } from '../../inbox/store/inbox-store.js';
import { idsOf, incoming, LEASE_MS, seededRandom, TestWorker } from './contract-fixtures.js';
import { Transitions } from './transitions.js';

const HANDLERS = ['book', 'mail', 'gone'];

/** Two processes that do everything that changes deliveries, in an order that a seed decides. */
export class Interleaving {
  readonly #random: () => number;
  readonly #transitions: Transitions;
  #workers: TestWorker[] = [];
  #leases: ClaimedDelivery[] = [];
  #ids: string[] = [];

  constructor(
    private readonly stores: readonly InboxStore[],
    private readonly advance: (ms: number) => Promise<void>,
    seed: number,
  ) {
    this.#random = seededRandom(seed);
    this.#transitions = new Transitions(stores[0]!);
  }

  async run(steps: number): Promise<void> {
    this.#workers = await Promise.all(this.stores.map((store) => TestWorker.start(store)));
    const [receive, claim, settle] = [
      () => this.#receive(),
      () => this.#claim(),
      () => this.#settle(),
    ];
    const actions = [
      receive,
      receive,
      claim,
      claim,
      claim,
      settle,
      settle,
      settle,
      () => this.#suspect(),
      () => this.#crash(),
      () => this.#redrive(),
      () => this.#skip(),
      () => this.#forget(),
      () => this.#pause(),
    ];
    for (let step = 0; step < steps; step += 1) {
      await this.#pick(actions)();
      await this.#checkKeys();
    }
    await this.#finish();
  }

  /** All that was received is done, dead or skipped in the end: nothing is held for ever. */
  async #finish(): Promise<void> {
    const [store] = this.stores;
    for (const handler of ['*', ...HANDLERS]) await store!.pause(handler, false);
    const [worker] = this.#workers;
    for (let idle = 0; idle < 2;) {
      for (const lease of this.#leases) await store!.complete(lease);
      const [dueInMs, suspect] = [
        await store!.nextDueInMs(HANDLERS),
        await worker!.claimSuspect(true, HANDLERS),
      ];
      if (dueInMs !== null && dueInMs > 0) await this.advance(dueInMs);
      this.#leases = await worker!.claim(HANDLERS, 1000);
      if (suspect) this.#leases.push(suspect);
      idle = this.#leases.length === 0 ? idle + 1 : 0;
      await worker!.outlive(this.advance);
    }
    const { deliveries } = await store!.stats();
    deepEqual(
      deliveries.filter(({ state }) => state !== 'dead'),
      [],
    );
  }

  async #checkKeys(): Promise<void> {
    const running = await this.stores[0]!.list({
      filter: { state: 'running' },
      order: 'oldest',
      limit: 1000,
      after: null,
    });
    const keys = running.events.flatMap(({ orderingKey, deliveries }) =>
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
      const assign = this.#random() < 0.4 ? { worker: worker.id, handlers } : null;
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
    const claim = () => worker.store.claim({ worker: worker.id, wanted });
    this.#leases.push(...(await this.#during('claim', claim)));
  }

  async #suspect(): Promise<void> {
    const worker = this.#pick(this.#workers);
    const alone = this.#random() < 0.5;
    const suspect = await this.#during('claimSuspect', () => worker.claimSuspect(alone, HANDLERS));
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

  /** One of the processes dies. The other one sees it, and a new one starts. */
  async #crash(): Promise<void> {
    if (this.#random() < 0.6) return this.advance(Math.floor(this.#random() * 8000));
    const index = Math.floor(this.#random() * this.#workers.length);
    const observer = this.#workers[1 - index]!;
    await observer.heartbeat();
    await this.advance(LEASE_MS + 1000);
    equal((await this.#during('heartbeat', () => observer.heartbeat())).alive, true);
    this.#workers[index] = await TestWorker.start(this.stores[index]!);
  }

  async #redrive(): Promise<void> {
    const store = this.#pick(this.stores);
    const selection = { company: 'acme', id: this.#pick(this.#ids) ?? 'none', handlers: HANDLERS };
    const options = { force: this.#random() < 0.5, dueInMs: [this.#pick([0, 5000])] };
    await this.#during('redrive', () => store.redrive([selection], options));
  }

  async #skip(): Promise<void> {
    const store = this.#pick(this.stores);
    const handlers = [this.#pick(HANDLERS)];
    const selection = { company: 'acme', id: this.#pick(this.#ids) ?? 'none', handlers };
    await this.#during('skip', () => store.skip([selection]));
  }

  async #forget(): Promise<void> {
    if (this.#random() < 0.7) return;
    await this.#during('forgetHandler', () => this.#pick(this.stores).forgetHandler('gone'));
  }

  async #pause(): Promise<void> {
    const handler = this.#pick(HANDLERS);
    await this.#pick(this.stores).pause(handler, this.#random() < 0.3);
  }

  #during<T>(operation: string, run: () => Promise<T>): Promise<T> {
    return this.#transitions.during(operation, run);
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random() * from.length)]!;
  }
}
