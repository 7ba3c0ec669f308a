import type { Mutant } from '../mutant.ts';
import { APPLICATION_MUTANTS } from './applications.ts';
import { INBOX_STORE_MUTANTS } from './inbox-store.ts';
import { INBOX_WORK_MUTANTS } from './inbox-work.ts';
import { WEBHOOK_MUTANTS } from './webhook.ts';

/** Every mutant, at least one for each promise. */
export const MUTANTS: readonly Mutant[] = [
  ...WEBHOOK_MUTANTS,
  ...INBOX_STORE_MUTANTS,
  ...INBOX_WORK_MUTANTS,
  ...APPLICATION_MUTANTS,
];
