import type { Mutant } from '../mutant.ts';
import { API_MUTANTS } from './api.ts';
import { APPLICATION_MUTANTS } from './applications.ts';
import { CONSOLE_MUTANTS } from './console.ts';
import { ENGINE_MUTANTS } from './engines.ts';
import { EXPECTATION_MUTANTS } from './expectations.ts';
import { HANDLER_MUTANTS } from './handlers.ts';
import { INBOX_RECOVERY_MUTANTS } from './inbox-recovery.ts';
import { INBOX_STORE_MUTANTS } from './inbox-store.ts';
import { INBOX_WORK_MUTANTS } from './inbox-work.ts';
import { OPERATING_MUTANTS } from './operating.ts';
import { SECURITY_MUTANTS } from './security.ts';
import { TELEMETRY_MUTANTS } from './telemetry.ts';
import { TOKEN_MUTANTS } from './tokens.ts';
import { WEBHOOK_MUTANTS } from './webhook.ts';

/** Every mutant, at least one for each promise. */
export const MUTANTS: readonly Mutant[] = [
  ...WEBHOOK_MUTANTS,
  ...HANDLER_MUTANTS,
  ...SECURITY_MUTANTS,
  ...TOKEN_MUTANTS,
  ...API_MUTANTS,
  ...INBOX_RECOVERY_MUTANTS,
  ...INBOX_STORE_MUTANTS,
  ...INBOX_WORK_MUTANTS,
  ...EXPECTATION_MUTANTS,
  ...ENGINE_MUTANTS,
  ...OPERATING_MUTANTS,
  ...TELEMETRY_MUTANTS,
  ...APPLICATION_MUTANTS,
  ...CONSOLE_MUTANTS,
];
