import type { StoredEvent } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { COMMITTING } from './handler-behaviour.ts';
import type { SimulatedDatabase } from './simulated-database.ts';
import type { EventPlan, HandlerName } from './scenario.ts';

/** Compares the stored deliveries with the statistics, and with the effects of the handlers. */
export class FinalChecks {
  readonly violations: string[] = [];
  readonly #database: SimulatedDatabase;
  readonly #forced: (company: string, id: string, handler: string) => number;

  constructor(
    database: SimulatedDatabase,
    /** Returns the maximum number of times that an operator has forced a delivery to run again. */
    forced: (company: string, id: string, handler: string) => number,
  ) {
    this.#database = database;
    this.#forced = forced;
  }

  async stored(): Promise<readonly StoredEvent[]> {
    const { store } = this.#database;
    return (await store.list({ filter: {}, order: 'oldest', limit: 1000, after: null })).events;
  }

  /** Checks that the counts of `stats()` equal the stored rows. */
  async checkStats(): Promise<void> {
    const counted = new Map<string, number>();
    for (const { deliveries } of await this.stored()) {
      for (const { handler, state } of deliveries) {
        const key = `${handler} ${state}`;
        if (state !== 'done' && state !== 'skipped') counted.set(key, (counted.get(key) ?? 0) + 1);
      }
    }
    const { deliveries } = await this.#database.store.stats();
    const stats = deliveries.map(({ handler, state, count }) => `${handler} ${state} ${count}`);
    const rows = [...counted].map(([key, count]) => `${key} ${count}`);
    if (stats.toSorted().join() !== rows.toSorted().join()) {
      this.violations.push(
        `IN-28 stats() returns ${stats.join(', ')}, but the rows are ${rows.join(', ')}`,
      );
    }
  }

  /** Checks that each effect exists once, and that each done delivery has the effect that its handler commits. */
  async checkEffects(events: readonly StoredEvent[]): Promise<void> {
    const times = new Map<string, number>();
    for (const effect of await this.#database.effects()) {
      times.set(effect, (times.get(effect) ?? 0) + 1);
    }
    for (const { company, id, deliveries } of events) {
      const scripts = await this.#scriptsOf(company, id);
      for (const { handler, state } of deliveries) {
        const key = `${company}/${id}/${handler}`;
        const count = times.get(key) ?? 0;
        const forced = this.#forced(company, id, handler);
        if (count > 1 + forced)
          this.violations.push(`IN-21 the effect of ${key} exists ${count} times`);
        const commits = scripts?.[handler as HandlerName].every((one) => COMMITTING.has(one));
        if (state === 'done' && commits && count === 0) {
          this.violations.push(`IN-22 ${key} is done without its effect`);
        }
      }
    }
  }

  /** What the handlers do with an event; `undefined` for an event of an overdue payment. */
  async #scriptsOf(company: string, id: string): Promise<EventPlan['scripts'] | undefined> {
    const raw = (await this.#database.store.find(company, id))?.raw;
    const { data } = JSON.parse(String(raw)) as { data: { scripts?: EventPlan['scripts'] } };
    return data.scripts;
  }
}

/** The deliveries that are not done, dead or skipped, as text. */
export function stuck(events: readonly StoredEvent[]): string {
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
