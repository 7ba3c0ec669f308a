import type { Mutant } from '../mutant.ts';

/** Webhook requests and handlers: WH-01 to WH-31. */
export const WEBHOOK_MUTANTS: readonly Mutant[] = [
  {
    promise: 'WH-02',
    fault: 'accepts any well-formed signature',
    file: 'libs/payments/src/webhook/signature.ts',
    replace: 'if (matches === 0) {',
    by: 'if (matches < 0) {',
    specs: ['test/e2e/webhook-http.spec.ts'],
  },
];
