import type { Mutant } from '../mutant.ts';

const E2E = 'test/e2e/console';

/** The pages of the console: OP-30 and later. */
export const CONSOLE_MUTANTS: readonly Mutant[] = [
  {
    promise: 'OP-30',
    fault: 'a field of a CSV file may begin with a formula',
    file: 'libs/console/src/csv-export.ts',
    replace: 'NUMBER.test(text) ? text',
    by: 'text ? text',
    specs: ['libs/console/src/csv-export.spec.ts'],
  },
  {
    promise: 'OP-30',
    fault: 'an export is not in the audit trail',
    file: 'libs/console/src/console-api.controller.ts',
    replace: 'await this.audit.performed(who, exported(list, rows, filter), true);',
    by: 'void [who, exported, rows, filter];',
    specs: [`${E2E}/csv.spec.ts`],
  },
  {
    promise: 'OP-31',
    fault: 'the page of an event shows dead deliveries last',
    file: 'libs/console/pages/format.js',
    replace: 'URGENCY.indexOf(a.state) - URGENCY.indexOf(b.state)',
    by: 'URGENCY.indexOf(b.state) - URGENCY.indexOf(a.state)',
    specs: [`${E2E}/browser-density.spec.ts`],
  },
  {
    promise: 'OP-31',
    fault: 'each of several redrives takes a line above the list',
    file: 'libs/console/pages/redrives.js',
    replace: 'jobs.length === 1',
    by: 'jobs.length > 0',
    specs: [`${E2E}/browser-density.spec.ts`],
  },
];
