import type { InboxDefinition, InboxStore } from 'nestjs-payments';
import { machineMs } from './application-protocol.js';
import type { Journal } from './journal.js';

/** An inbox whose heartbeats, and whose runs that are alone in their process, are written to the journal. */
export function observedInbox(inbox: InboxDefinition, journal: Journal): InboxDefinition {
  return {
    name: inbox.name,
    create: (runtime) => {
      const store = inbox.create(runtime);
      const observed: Partial<InboxStore> = {
        register: (worker) =>
          beat(worker.id, async () => {
            const at = machineMs();
            const catalog = await store.register(worker);
            journal.write({ kind: 'registered', at, end: machineMs() });
            return [true, catalog];
          }),
        heartbeat: (worker) =>
          beat(worker, async () => {
            const heartbeat = await store.heartbeat(worker);
            return [heartbeat.alive, heartbeat];
          }),
        retire: async (worker, graceMs) => {
          const at = machineMs();
          journal.write({ kind: 'sent', at });
          await store.retire(worker, graceMs);
          journal.write({ kind: 'retired', at, worker });
        },
        claimSuspect: async (request) => {
          const claimed = await store.claimSuspect(request);
          if (claimed !== null && request.alone) {
            journal.write({ kind: 'alone', event: claimed.id, handler: claimed.handler });
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

  /** The lease begins when the store renews it, which is not before `at`. */
  async function beat<T>(worker: string, call: () => Promise<[boolean, T]>): Promise<T> {
    const at = machineMs();
    journal.write({ kind: 'sent', at });
    try {
      const [alive, result] = await call();
      journal.write({ kind: 'beat', at, end: machineMs(), worker, alive });
      return result;
    } catch (error) {
      journal.write({ kind: 'beat', at, end: machineMs(), worker, alive: null });
      throw error;
    }
  }
}
