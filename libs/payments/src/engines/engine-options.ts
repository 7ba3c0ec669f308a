import { flag, mustBe, oneOf, optional, optionsInvalid, whole } from '../errors/option-checks.js';
import type { OptionCheck, OptionChecks } from '../errors/option-checks.js';

/** The options that all adapters have. */
export interface EngineOptions {
  /**
   * The name of this worker service: 1 to 64 of `A-Z a-z 0-9 _ -`. Each worker service takes every event. The processes
   * of one worker service have the same name and share the events, so two different worker services must not have the
   * same name. Required for the option `source` of the module.
   */
  service?: string;
  /**
   * What happens on each new connection. `create`: creates what is missing at the engine, and checks what exists.
   * `check`: only checks, and what is missing is an error. `warn`: logs the settings that lose events, and continues.
   * Default `create`.
   */
  setup?: 'create' | 'check' | 'warn';
  /** The maximum number of messages that this process stores at the same time. 1 to 10,000. Default 100. */
  maxInProgress?: number;
  /**
   * Whether the module checks the signature of each message. `false` trusts everyone who can write to the engine.
   * Default `true`.
   */
  verify?: boolean;
}

const SERVICE = /^[\w-]{1,64}$/;
const SERVICE_RULE = '1 to 64 of A-Z, a-z, 0-9, _ and -';

/** The checks of {@link EngineOptions}, for `checkFields`. */
export const ENGINE_CHECKS = {
  service: optional<string>(SERVICE_RULE, (value) => isText(value, SERVICE)),
  setup: oneOf('create', 'check', 'warn'),
  maxInProgress: whole({ default: 100, min: 1, max: 10_000, unit: 'messages' }),
  verify: flag(true),
} satisfies OptionChecks<EngineOptions>;

/** Check of the names of worker services, for an engine that needs a queue for each worker service. Default: none. */
export const SERVICES: OptionCheck<readonly string[]> = (name, value = []) => {
  if (Array.isArray(value) && value.every((one) => isText(one, SERVICE))) {
    return Object.freeze([...(value as readonly string[])]);
  }
  throw mustBe(name, `an array of names of services, each ${SERVICE_RULE}`, value);
};

/**
 * Creates the check of an option that is an object with the options of a client library. The library checks the fields
 * of this object. Default: none.
 */
export function clientOptions<T extends object>(): OptionCheck<T | undefined> {
  return optional('an object with options of the connection', (value) => typeof value === 'object');
}

/**
 * Creates the check of a required text.
 *
 * @param expected what the text must be, for the message
 */
export function matching(expected: string, pattern: RegExp): OptionCheck<string> {
  return (name, value) => {
    if (isText(value, pattern)) return value;
    throw mustBe(name, expected, value);
  };
}

/**
 * Returns the name of the worker service. Call this function in `consume`.
 *
 * @throws PaymentsError `options_invalid` if the name is not set.
 */
export function requireService(service: string | undefined): string {
  if (service !== undefined) return service;
  throw optionsInvalid('"source" needs the option "service", the name of this worker service.');
}

function isText(value: unknown, pattern: RegExp): value is string {
  return typeof value === 'string' && pattern.test(value);
}
