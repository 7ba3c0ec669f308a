import type { Mutant } from '../mutant.ts';
import { WEBHOOK_MUTANTS } from './webhook.ts';

/** Every mutant, at least one for each promise. */
export const MUTANTS: readonly Mutant[] = [...WEBHOOK_MUTANTS];
