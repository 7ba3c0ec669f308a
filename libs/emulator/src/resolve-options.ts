import { validateInput } from './validate-input.js';
import { NewCompany } from './companies/company-inputs.js';
import { settingsPrefix } from './companies/company.js';
import { DEFAULT_COMPANY } from './companies/company-store.js';
import { publicFetch } from './deliveries/public-fetch.js';
import { EmulatorInputError } from './emulator-errors.js';
import type { PaymentsEmulatorOptions, ResolvedEmulatorOptions } from './emulator-options.js';
import { OTHER_STATUS } from './faults/fault-plan.js';
import { validateFaultPlan } from './faults/fault-plan-validator.js';
import { defaultResponseShapes } from './http/response-shapes.js';
import { resolveNetworkAccess } from './network-access.js';
import { systemClock } from './runtime/emulator-clock.js';

const COMPANY_FIELDS = Object.keys(new NewCompany()) as (keyof NewCompany)[];

/** An id from which {@link settingsPrefix} makes the prefix of an environment variable's name. */
const COMPANY_ID = /^[A-Za-z][\w-]{0,63}$/;

interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly default: number;
}

/** @throws EmulatorInputError that names each invalid option with its unit and bounds */
export function resolveOptions(
  options: PaymentsEmulatorOptions = {},
  nodeEnv = process.env['NODE_ENV'],
): ResolvedEmulatorOptions {
  const problems: string[] = [];
  const networkAccess = resolveNetworkAccess(options, nodeEnv, problems);
  const { publicOnly } = networkAccess.webhookPolicy;
  const whole = (name: keyof PaymentsEmulatorOptions, unit: string, bounds: Bounds): number => {
    const value = options[name] ?? bounds.default;
    if (
      Number.isInteger(value) &&
      (value as number) >= bounds.min &&
      (value as number) <= bounds.max
    ) {
      return value as number;
    }
    problems.push(
      `${name} must be a whole number${unit && ` of ${unit}`} from ${bounds.min} to ${bounds.max}`,
    );
    return bounds.default;
  };
  const text = (
    name: keyof PaymentsEmulatorOptions,
    pattern: RegExp,
    description: string,
    defaultValue: string,
  ): string => {
    const value = options[name] ?? defaultValue;
    if (typeof value === 'string' && pattern.test(value)) return value;
    problems.push(`${name} must be ${description}`);
    return defaultValue;
  };
  const status = (name: 'pendingStatus' | 'failedStatus', defaultValue: string): string =>
    text(name, OTHER_STATUS.pattern, OTHER_STATUS.description, defaultValue);
  const url = (name: 'publicUrl' | 'productionPublicUrl'): string | undefined => {
    const value = options[name];
    if (value === undefined) return undefined;
    const parsed = URL.parse(value);
    // A path is not supported, because the pages link to each other from the root.
    const isOrigin = parsed?.href === `${parsed?.origin}/` && /^https?:$/.test(parsed.protocol);
    if (isOrigin) return value.replace(/\/+$/, '');
    problems.push(
      `${name} must be an http:// or https:// URL without a path or credentials, such as http://emulator:4010`,
    );
    return undefined;
  };
  const resolved = {
    ...networkAccess,
    host: text('host', /^\S+$/, 'a host name or an address', '127.0.0.1'),
    port: whole('port', '', { min: 0, max: 65_535, default: 0 }),
    productionPort: whole('productionPort', '', { min: 0, max: 65_535, default: 0 }),
    publicUrl: url('publicUrl'),
    productionPublicUrl: url('productionPublicUrl'),
    serviceName: text(
      'serviceName',
      /^[\w.-]{1,64}$/,
      '1 to 64 letters, digits, ., _ or -',
      'PaymentsEmulator',
    ),
    seed: options.seed,
    freshIds: options.freshIds ?? false,
    tokenLifetime: whole('tokenLifetime', 'seconds', { min: 1, max: 86_400, default: 3599 }),
    pendingStatus: status('pendingStatus', 'pending'),
    failedStatus: status('failedStatus', 'failed'),
    currency: text('currency', /^[A-Z]{3}$/, 'three capital letters, such as KES', 'KES'),
    deliveryTimeout: whole('deliveryTimeout', 'milliseconds', {
      min: 1,
      max: 600_000,
      default: 30_000,
    }),
    redeliver: options.redeliver ?? [],
    concurrency: whole('concurrency', 'deliveries', { min: 1, max: 10_000, default: 50 }),
    logSize: whole('logSize', 'attempts', { min: 1, max: 1_000_000, default: 1000 }),
    maxTransactions: whole('maxTransactions', 'transactions', {
      min: 1,
      max: 1_000_000,
      default: 10_000,
    }),
    maxCompanies: whole('maxCompanies', 'companies', { min: 1, max: 100_000, default: 1000 }),
    faults: options.faults ?? {},
    shapes: { ...defaultResponseShapes, ...options.shapes },
    onDelivery: options.onDelivery ?? ((): void => undefined),
    clock: options.clock ?? systemClock,
    fetch: options.fetch ?? (publicOnly ? publicFetch(options) : globalThis.fetch),
    lookup: options.lookup,
    companies: companiesOf(options, problems),
  };
  if (resolved.failedStatus === resolved.pendingStatus) {
    problems.push('failedStatus must not be the same as pendingStatus');
  }
  if (problems.length > 0) throw new EmulatorInputError(problems);
  for (const company of resolved.companies) validateInput(NewCompany, company);
  validateFaultPlan(resolved.faults);
  validateFaultPlan({ delivery: { redeliver: resolved.redeliver } });
  return Object.freeze(resolved);
}

function companiesOf(options: PaymentsEmulatorOptions, problems: string[]): NewCompany[] {
  const given = COMPANY_FIELDS.map((field) => [field, options[field]] as const);
  const { companies: ids } = options;
  if (ids === undefined) {
    return [{ ...Object.fromEntries(given), companyId: options.companyId ?? DEFAULT_COMPANY }];
  }
  const { webhookUrl, webhookActive } = options;
  const ofOne = given.find(
    ([field, value]) => value !== undefined && !/^webhook(Url|Active)$/.test(field),
  );
  if (ofOne !== undefined) {
    problems.push(
      `${ofOne[0]} is a setting of one company, so it must not be given together with the option companies`,
    );
  }
  const names = new Set(ids.map(settingsPrefix));
  const valid = ids.length > 0 && ids.length <= 100 && ids.every((id) => COMPANY_ID.test(id));
  if (!valid || names.size < ids.length) {
    problems.push(
      'companies must be 1 to 100 ids, each of a letter and up to 63 letters, digits, _ or -, such as acme,umbrella. ' +
        'Two ids must not differ only in case, _ or -, because their settings would have the same names.',
    );
  }
  return ids.map((companyId) => ({
    companyId,
    webhookActive,
    webhookUrl: webhookUrl && `${webhookUrl.replace(/\/+$/, '')}/${companyId}`,
  }));
}
