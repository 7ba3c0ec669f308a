import type { Mutant } from '../mutant.ts';

const PAYMENTS = 'libs/payments/src';
const CONSOLE = 'libs/console/src';
const FACTS = `${PAYMENTS}/telemetry/process-facts.spec.ts`;
const REPORTS = 'test/e2e/inbox/process-reports.spec.ts';
const VIEWS = 'test/e2e/console/browser-views.spec.ts';
const OVERVIEW = 'test/e2e/console/overview.spec.ts';

/** What the pages of the console tell operators: OP-20 and later. */
export const OPERATING_MUTANTS: readonly Mutant[] = [
  {
    promise: 'OP-20',
    fault: 'does not store the last report of a process that ends',
    file: `${PAYMENTS}/inbox/operate/process-reports.ts`,
    replace: 'this.#report.then(() => this.#put())',
    by: 'this.#report',
    specs: [REPORTS],
  },
  {
    promise: 'OP-20',
    fault: 'counts rejections only if there are observers',
    file: `${PAYMENTS}/telemetry/observers.ts`,
    replace: '    this.facts.rejected(info);\n    if (this.active)',
    by: '    if (this.active) this.facts.rejected(info);\n    if (this.active)',
    specs: [OVERVIEW],
  },
  {
    promise: 'OP-20',
    fault: 'counts requests in a minute that is no longer in the last hour',
    file: `${PAYMENTS}/telemetry/process-facts.ts`,
    replace: 'this.#counts.splice(0, old);',
    by: '',
    specs: [FACTS],
  },
  {
    promise: 'OP-20',
    fault: 'is not red after rejections because an earlier request was accepted',
    file: `${CONSOLE}/console-processes.ts`,
    replace: 'sinceMs >= acceptedMs',
    by: 'acceptedMs === 0',
    specs: [OVERVIEW, VIEWS],
  },
  {
    promise: 'OP-21',
    fault: 'forgets in which processes a secret was used before',
    file: `${PAYMENTS}/inbox/operate/process-reports.ts`,
    replace: 'this.#reports % INHERIT_EVERY === 0',
    by: 'false',
    specs: [REPORTS],
  },
  {
    promise: 'OP-21',
    fault: 'takes the previous secret for the current one',
    file: `${PAYMENTS}/webhook/signature.ts`,
    replace: 'match = index;',
    by: 'match = 0;',
    specs: [VIEWS],
  },
  {
    promise: 'OP-22',
    fault: 'does not mark a handler without a process',
    file: 'libs/console/pages/processes.js',
    replace: 'const lost = loads.length === 0;',
    by: 'const lost = false;',
    specs: [VIEWS],
  },
  {
    promise: 'OP-42',
    fault: 'a pause never ends by itself',
    file: `${PAYMENTS}/stores/sql/workers.ts`,
    replace: 'WHERE until_at <= ${',
    by: 'WHERE until_at < 0 AND 0 < ${',
    specs: ['test/store-contract/sqlite.spec.ts'],
  },
  {
    promise: 'OP-42',
    fault: 'a pause keeps its first reason',
    file: `${PAYMENTS}/stores/sql/workers.ts`,
    replace: 'SET facts = excluded.facts, until_at',
    by: 'SET until_at',
    specs: ['test/store-contract/sqlite.spec.ts'],
  },
  {
    promise: 'OP-40',
    fault: 'counts each delivery as one company',
    file: `${PAYMENTS}/inbox/operate/failure-groups.ts`,
    replace: 'new Set(all.map(({ company }) => company))',
    by: 'new Set(all)',
    specs: [`${PAYMENTS}/inbox/operate/failure-groups.spec.ts`],
  },
  {
    promise: 'OP-40',
    fault: 'counts an hour as the hour after it',
    file: `${PAYMENTS}/inbox/operate/failure-groups.ts`,
    replace: 'trend[TREND_HOURS - 1 - hoursAgo]',
    by: 'trend[TREND_HOURS - hoursAgo]',
    specs: [`${PAYMENTS}/inbox/operate/failure-groups.spec.ts`],
  },
  {
    promise: 'OP-41',
    fault: 'an acknowledged group never changes',
    file: `${PAYMENTS}/inbox/operate/failure-groups.ts`,
    replace: 'changed: count > known.count || newestAt.getTime() > known.newestMs',
    by: 'changed: false',
    specs: ['test/e2e/inbox/pause-and-forget.spec.ts'],
  },
  {
    promise: 'OP-43',
    fault: 'the console sends the result before the action is recorded',
    file: `${CONSOLE}/console-actions.ts`,
    replace: 'await this.audit.performed(',
    by: 'void this.audit.performed(',
    specs: ['test/e2e/console/outage.spec.ts'],
  },
  {
    promise: 'OP-43',
    fault: 'the audit of one operator contains the entries of others',
    file: `${CONSOLE}/audit-trail.ts`,
    replace: "(entry.who ?? 'unknown').toLowerCase() === name",
    by: 'true',
    specs: ['test/e2e/console/audit.spec.ts'],
  },
  {
    promise: 'OP-43',
    fault: 'an action fails if it cannot be recorded',
    file: `${CONSOLE}/audit-trail.ts`,
    replace: 'if (!(error instanceof ConsoleException)) throw error;',
    by: 'throw error;',
    specs: ['test/e2e/console/outage.spec.ts'],
  },
];
