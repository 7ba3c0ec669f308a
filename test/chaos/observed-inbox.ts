import type { InboxDefinition } from 'nestjs-payments';
import { monotonicMs } from './application-protocol.js';
import type { Journal } from './journal.js';

/** Wraps an inbox so that the journal records its heartbeats and its claims of suspects. */
export function observedInbox(inbox: InboxDefinition, journal: Journal): InboxDefinition {
  return {
    name: inbox.name,
    create: (runtime) => {
      const store = inbox.create(runtime);
      const observed: Partial<typeof store> = {
        register: (worker) =>
          recordHeartbeat(worker.id, async () => {
            const at = monotonicMs();
            const catalog = await store.register(worker);
            journal.write({ kind: 'worker-registered', at, end: monotonicMs() });
            return [true, catalog];
          }),
        heartbeat: (worker) =>
          recordHeartbeat(worker, async () => {
            const heartbeat = await store.heartbeat(worker);
            return [heartbeat.alive, heartbeat];
          }),
        retire: async (worker, graceMs) => {
          const at = monotonicMs();
          journal.write({ kind: 'heartbeat-started', at });
          await store.retire(worker, graceMs);
          journal.write({ kind: 'worker-retired', at, worker });
        },
        claimSuspect: async (request) => {
          const claimed = await store.claimSuspect(request);
          if (claimed !== null) {
            const { id, handler } = claimed;
            journal.write({ kind: 'claimed-suspect', event: id, handler });
          }
          return claimed;
        },
      };
      return new Proxy(store, {
        get(target, name) {
          const value: unknown = Reflect.get(observed, name) ?? Reflect.get(target, name, target);
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        },
      });
    },
  };

  /** Records the time before the call, because the store renews the lease at that time or later. */
  async function recordHeartbeat<T>(worker: string, call: () => Promise<[boolean, T]>): Promise<T> {
    const at = monotonicMs();
    journal.write({ kind: 'heartbeat-started', at });
    try {
      const [alive, result] = await call();
      journal.write({ kind: 'heartbeat-ended', at, end: monotonicMs(), worker, alive });
      return result;
    } catch (error) {
      journal.write({ kind: 'heartbeat-ended', at, end: monotonicMs(), worker, alive: null });
      throw error;
    }
  }
}
