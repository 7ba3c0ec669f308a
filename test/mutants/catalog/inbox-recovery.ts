import type { Mutant } from '../mutant.ts';

const INBOX = 'libs/payments/src/inbox';

/** Recovery after crashes: IN-19. */
export const INBOX_RECOVERY_MUTANTS: readonly Mutant[] = [
  {
    promise: 'IN-19',
    fault: 'counts an attempt of each delivery that ran when its process died',
    file: `${INBOX}/memory/memory-deliveries.ts`,
    replace: '!lost || row.crashes === 0',
    by: '!lost',
    specs: ['test/e2e/inbox-contract-memory.spec.ts'],
  },
  {
    promise: 'IN-19',
    fault: 'counts no attempt of a suspect whose process died again',
    file: `${INBOX}/sqlite/sql/workers.ts`,
    replace: 'attempts - (crashes = 0)',
    by: 'attempts - 1',
    specs: ['test/e2e/inbox-contract-sqlite.spec.ts'],
  },
  {
    promise: 'IN-19',
    fault: 'runs several suspects at a time',
    file: `${INBOX}/work/inbox-worker.ts`,
    replace: 'this.#suspectRuns || handlers.length === 0',
    by: 'handlers.length === 0',
    specs: [`${INBOX}/work/inbox-worker-suspects.spec.ts`],
  },
  {
    promise: 'IN-19',
    fault: 'claims a suspect only if a slot is left after the claim of other deliveries',
    file: `${INBOX}/work/inbox-worker.ts`,
    replace: 'const handlers = free.filter((handler) => this.#withSuspects.has(handler));',
    by: 'const handlers = this.#slots.idle ? free.filter((handler) => this.#withSuspects.has(handler)) : [];',
    specs: [`${INBOX}/work/inbox-worker-suspects.spec.ts`],
  },
];
