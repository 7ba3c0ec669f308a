import { EmulatorInputError } from '../emulator-errors.js';
import type { Check, FaultDefinition, FaultPlan } from './fault-plan.js';
import { FAULTS, TRIGGER } from './fault-plan.js';

const TARGETS = mapValues(FAULTS, ({ faults }) => {
  const checks = mapValues(faults as Readonly<Record<string, FaultDefinition>>, checkOf);
  return (value: unknown) => firstProblem(value, checks);
});

/**
 * Validates a fault plan and returns a copy, so that later changes of the original have no effect.
 *
 * @throws EmulatorInputError that names the invalid field and the values that the field accepts, with units
 */
export function validateFaultPlan(plan: unknown): FaultPlan {
  const problem = firstProblem(plan, TARGETS);
  if (problem) {
    throw new EmulatorInputError([
      problem.startsWith('.') ? problem.slice(1) : `the fault plan ${problem}`,
    ]);
  }
  return structuredClone(plan) as FaultPlan;
}

/**
 * Creates the check for the value of a fault. The value must be an object that has only the fields of a trigger and the
 * fields of the fault. Exceptions are faults whose value must be `true` or a list.
 */
function checkOf({ only, fields = {} }: FaultDefinition): Check {
  if (only === true) {
    return (value) =>
      value === true ? undefined : 'must be true; remove the fault to switch it off';
  }
  if (only !== undefined) return only.check;
  const checks = {
    ...TRIGGER,
    ...mapValues(fields, ({ check }) => check),
  };
  const required = Object.keys(fields).filter((name) => fields[name]?.required);
  return (value) => firstProblem(value, checks, required);
}

/**
 * Returns the first error in an object: the path of the invalid value and the accepted values, for example
 * `.api.slow.ms must be …`. Returns undefined if the object is valid.
 */
function firstProblem(
  value: unknown,
  checks: Readonly<Record<string, Check>>,
  required: readonly string[] = [],
): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return 'must be an object';
  }
  const missing = required.find((key) => !Object.hasOwn(value, key));
  if (missing) return `.${missing} is required`;
  for (const [key, given] of Object.entries(value)) {
    const check = Object.hasOwn(checks, key) ? checks[key] : undefined;
    if (!check) return `.${key} is unknown; known are ${Object.keys(checks).join(', ')}`;
    const problem = given === undefined ? undefined : check(given);
    if (problem) return problem.startsWith('.') ? `.${key}${problem}` : `.${key} ${problem}`;
  }
  return undefined;
}

function mapValues<V, R>(
  record: Readonly<Record<string, V>>,
  map: (value: V) => R,
): Readonly<Record<string, R>> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
}
