import type { Mutant } from '../mutant.ts';

const INBOX = 'libs/payments/src/inbox';
const STORES = 'libs/payments/src/stores';

/** Recovery after crashes: IN-12 and IN-19. */
export const INBOX_RECOVERY_MUTANTS: readonly Mutant[] = [
  {
    promise: 'IN-12',
    fault: 'sends heartbeats half as often',
    file: `${INBOX}/work/worker-heartbeat.ts`,
    replace: 'this.worker.leaseMs / 4 +',
    by: 'this.worker.leaseMs / 2 +',
    specs: [`${INBOX}/work/worker-heartbeat.spec.ts`],
  },
  {
    promise: 'IN-12',
    fault:
      'uses the time of the request for the age of a heartbeat, which may be earlier than the heartbeat',
    file: `${STORES}/sqlite/sql/workers.ts`,
    replace: 'check(rows, connection.machine() + times.processOffset)',
    by: 'check(rows, times.clock)',
    specs: [`${STORES}/sqlite/sql/workers-liveness.spec.ts`],
  },
  {
    promise: 'IN-19',
    fault: 'counts an attempt of each delivery that ran when its process died',
    file: `${STORES}/sqlite/sql/workers.ts`,
    replace: 'attempts = attempts - (crashes = 0)',
    by: 'attempts = attempts',
    specs: ['test/store-contract/sqlite-memory.spec.ts'],
  },
  {
    promise: 'IN-19',
    fault: 'counts no attempt of a suspect whose process died again',
    file: `${STORES}/sqlite/sql/workers.ts`,
    replace: 'attempts - (crashes = 0)',
    by: 'attempts - 1',
    specs: ['test/store-contract/sqlite.spec.ts'],
  },
  {
    promise: 'IN-19',
    fault: 'runs several suspects at a time',
    file: `${INBOX}/work/inbox-worker.ts`,
    replace: 'this.#suspectRuns || handlers.length === 0',
    by: 'handlers.length === 0',
    specs: [`${INBOX}/work/inbox-worker-crashes.spec.ts`],
  },
  {
    promise: 'IN-19',
    fault: 'claims a suspect only if a slot is left after the claim of other deliveries',
    file: `${INBOX}/work/inbox-worker.ts`,
    replace: 'const handlers = free.filter((handler) => this.#withSuspects.has(handler));',
    by: 'const handlers = this.#slots.idle ? free.filter((handler) => this.#withSuspects.has(handler)) : [];',
    specs: [`${INBOX}/work/inbox-worker-crashes.spec.ts`],
  },
];
