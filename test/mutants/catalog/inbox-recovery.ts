import type { Mutant } from '../mutant.ts';

const INBOX = 'libs/payments/src/inbox';

/** Recovery after crashes: IN-19. */
export const INBOX_RECOVERY_MUTANTS: readonly Mutant[] = [
  {
    promise: 'IN-19',
    fault: 'runs a suspect with two crashes next to other deliveries',
    file: `${INBOX}/memory/memory-deliveries.ts`,
    replace: 'alone || crashes === 1',
    by: 'alone || crashes > 0',
    specs: ['test/e2e/inbox-contract-memory.spec.ts'],
  },
  {
    promise: 'IN-19',
    fault: 'charges deliveries that ran next to a crash',
    file: `${INBOX}/sqlite/sql/workers.ts`,
    replace: 'iif(alone = 1, 0, 1)',
    by: '0',
    specs: ['test/e2e/inbox-contract-sqlite.spec.ts'],
  },
  {
    promise: 'IN-19',
    fault: 'does not double the time that a suspect waits to run alone',
    file: `${INBOX}/recover/staggered-recovery.ts`,
    replace: 'this.#waitMs *= 2;',
    by: '',
    specs: [`${INBOX}/recover/staggered-recovery-wait.spec.ts`],
  },
  {
    promise: 'IN-19',
    fault: 'waits long for a suspect because of the waits for another one',
    file: `${INBOX}/recover/staggered-recovery.ts`,
    replace: '      this.#waitMs = FIRST_WAIT_MS;\n    } catch',
    by: '    } catch',
    specs: [`${INBOX}/recover/staggered-recovery-wait.spec.ts`],
  },
];
