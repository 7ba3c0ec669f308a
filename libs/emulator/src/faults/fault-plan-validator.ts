import { EmulatorInputError } from '../emulator-errors.js';
import type {
  ApiFaults,
  DeliveryFaults,
  FaultPlan,
  ResponseFaults,
  TokenFaults,
} from './fault-plan.js';

type Rule = (value: unknown) => string | undefined;
type Rules = Readonly<Record<string, Rule>>;
/** A rule for each field of `T`. */
type RulesOf<T> = { readonly [N in keyof T]-?: Rule };

const whole =
  (min: number, max: number, unit: string): Rule =>
  (value) =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max
      ? undefined
      : `must be a whole number of ${unit} from ${min} to ${max}`;

const oneOf =
  (...words: string[]): Rule =>
  (value) =>
    words.includes(value as string) ? undefined : `must be one of ${words.join(', ')}`;

const milliseconds = whole(0, 3_600_000, 'milliseconds');

const delay: Rule = (value) => {
  if (!Array.isArray(value)) return milliseconds(value);
  const [min, max] = value as unknown[];
  const valid = value.length === 2 && !milliseconds(min) && !milliseconds(max);
  return valid && (min as number) <= (max as number)
    ? undefined
    : 'must be milliseconds from 0 to 3600000, or a range [min, max] of them';
};

const schedule: Rule = (value) =>
  Array.isArray(value) && value.length <= 20 && value.every((ms) => !whole(0, 86_400_000, '')(ms))
    ? undefined
    : 'must be a list of at most 20 waits in milliseconds, each from 0 to 86400000';

const probability: Rule = (value) =>
  typeof value === 'number' && value >= 0 && value <= 1
    ? undefined
    : 'must be a number from 0 to 1';

const retryAfter: Rule = (value) =>
  typeof value === 'string' && /^[\x20-\x7e]{1,100}$/.test(value)
    ? undefined
    : whole(0, 86_400, 'seconds')(value) && 'must be seconds from 0 to 86400, or a header value';

const json: Rule = (value) =>
  ['function', 'symbol', 'bigint'].includes(typeof value) ? 'must be JSON' : undefined;

/**
 * Creates the rule of a fault. The value must be an object that has only the fields of a trigger and the fields of the
 * fault.
 */
const fault =
  (own: Rules = {}, required: readonly string[] = []): Rule =>
  (value) => {
    const rules = { next: whole(0, 1_000_000, 'times'), probability, ...own };
    return firstProblem(value, rules, required);
  };

const on: Rule = (value) =>
  value === true ? undefined : 'must be true; remove the fault to switch it off';

const otherStatus: Rule = (value) =>
  typeof value === 'string' && /^(?!complete$).{1,64}$/.test(value)
    ? undefined
    : 'must be 1 to 64 characters other than "complete"';

const DELIVERY: RulesOf<DeliveryFaults> = {
  off: on,
  drop: fault(),
  duplicate: fault({ copies: whole(1, 100, 'copies') }),
  delay: fault({ ms: delay }, ['ms']),
  reorder: fault({ window: whole(2, 1000, 'deliveries'), maxWaitMs: milliseconds }),
  tamperBody: fault({ how: oneOf('value', 'respace', 'truncate') }),
  tamperSignature: fault({ how: oneOf('digit', 'missing', 'malformed', 'scheme') }),
  oldSecret: fault(),
  redeliver: schedule,
};

const RESPONSE: RulesOf<ResponseFaults> = {
  slow: fault({ ms: delay }, ['ms']),
  reset: fault({ when: oneOf('before', 'after') }),
  unauthorized: fault(),
  error: fault({ status: whole(500, 599, 'HTTP status') }),
  rateLimit: fault({ retryAfter }),
  truncate: fault(),
  oversize: fault({
    bytes: whole(1, 1_073_741_824, 'bytes'),
    encoding: oneOf('identity', 'gzip'),
  }),
};

const TOKEN: RulesOf<TokenFaults> = {
  ...RESPONSE,
  lifetime: fault({ seconds: whole(1, 86_400, 'seconds') }, ['seconds']),
  expiresIn: fault({ value: json }),
  sameToken: fault(),
};

const API: RulesOf<ApiFaults> = {
  ...RESPONSE,
  notFound: fault({ forMs: whole(1, 86_400_000, 'milliseconds') }),
  otherStatus: fault({ status: otherStatus }),
};

const PLAN: RulesOf<FaultPlan> = {
  delivery: (value) => firstProblem(value, DELIVERY),
  token: (value) => firstProblem(value, TOKEN),
  api: (value) => firstProblem(value, API),
};

/**
 * Validates a plan and returns a copy, so that later changes of the original have no effect.
 *
 * @throws EmulatorInputError that names the invalid field and the values that the field accepts, with units
 */
export function validateFaultPlan(plan: unknown): FaultPlan {
  const problem = firstProblem(plan, PLAN);
  if (problem) {
    throw new EmulatorInputError([
      problem.startsWith('.') ? problem.slice(1) : `the fault plan ${problem}`,
    ]);
  }
  return structuredClone(plan) as FaultPlan;
}

/** Returns the first error in an object as a path and the accepted values: `.api.slow.ms must be …`. */
function firstProblem(
  value: unknown,
  rules: Rules,
  required: readonly string[] = [],
): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return 'must be an object';
  }
  const missing = required.find((key) => !Object.hasOwn(value, key));
  if (missing) return `.${missing} is required`;
  for (const [key, given] of Object.entries(value)) {
    const rule = Object.hasOwn(rules, key) ? rules[key] : undefined;
    if (!rule) return `.${key} is unknown; known are ${Object.keys(rules).join(', ')}`;
    const problem = given === undefined ? undefined : rule(given);
    if (problem) return problem.startsWith('.') ? `.${key}${problem}` : `.${key} ${problem}`;
  }
  return undefined;
}
