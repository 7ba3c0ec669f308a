import type { Mutant } from '../mutant.ts';

const TELEMETRY = 'libs/payments/src/telemetry';
const E2E = 'test/e2e';

/** Observers: TE-01 and TE-02. */
export const TELEMETRY_MUTANTS: readonly Mutant[] = [
  {
    promise: 'TE-01',
    fault: 'does not handle the rejection of an observer',
    file: `${TELEMETRY}/observers.ts`,
    replace: 'Promise.resolve(result).catch((error: unknown) => this.#failed(method, error));',
    by: 'void Promise.resolve(result);',
    specs: [`${E2E}/telemetry-observers-failing.spec.ts`],
  },
  {
    promise: 'TE-01',
    fault: 'gives the path of a call to observers with its ids',
    file: 'libs/payments/src/api/call/observe-call.ts',
    replace: 'hasTemplate ? pathTemplate : withoutIds(pathTemplate)',
    by: 'pathTemplate',
    specs: [`${E2E}/telemetry-observers-calls.spec.ts`],
  },
  {
    promise: 'TE-01',
    fault: 'reports no dead delivery',
    file: 'libs/payments/src/inbox/work/observe-attempt.ts',
    replace: "observed === 'dead'",
    by: "observed === 'lost'",
    specs: [`${E2E}/telemetry-observers-docs.spec.ts`],
  },
  {
    promise: 'TE-01',
    fault: 'calls the work of a span twice if the instrumentation does',
    file: `${TELEMETRY}/observers.ts`,
    replace: 'if (result !== undefined) return;',
    by: 'if (this.spans.length === 0 && result !== undefined) return;',
    specs: [`${E2E}/telemetry-observers-spans.spec.ts`],
  },
  {
    promise: 'TE-02',
    fault: 'replaces the error of a handler by the error of its filter',
    file: 'libs/payments/src/events/handler-errors.ts',
    replace: 'throw bothErrors(failure.thrown, second);',
    by: 'throw second;',
    specs: [`${E2E}/telemetry-observers-failing.spec.ts`],
  },
];
