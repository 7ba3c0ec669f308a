import type { AnswerShapes } from './answers/answer.shapes.js';
import { defaultShapes } from './answers/answer.shapes.js';
import type { EmulatorClock } from './clock/emulator.clock.js';
import { systemClock } from './clock/emulator.clock.js';
import { DEFAULT_COMPANY } from './companies/company.directory.js';
import { NewCompany } from './companies/company.inputs.js';
import type { DeliveryRecord } from './deliveries/delivery.record.js';
import { EmulatorInputError } from './emulator.errors.js';
import { checkInput } from './emulator.input.js';
import { resolveExposure } from './emulator.exposure.js';
import type { Exposure } from './emulator.exposure.js';
import type { LookupAll } from './deliveries/public-fetch.js';
import { publicFetch } from './deliveries/public-fetch.js';
import type { FaultPlan } from './faults/fault.plan.js';
import { validateFaultPlan } from './faults/fault.validator.js';

/**
 * What an emulator is started with. Everything has a default. The fields of {@link NewCompany}
 * describe the company it starts with, whose id is `default` unless `companyId` says otherwise.
 */
export interface PaymentsEmulatorOptions extends NewCompany {
  /**
   * The address to listen on. Default: `127.0.0.1`, this machine only. With any address that is not loopback, and with a
   * public URL that is not, others can reach the emulator: the controls demand `controlToken`, webhook URLs must lead to
   * public addresses, and the delivery log keeps 256 bytes and the `Content-Type` of an answer.
   */
  readonly host?: string | undefined;
  /**
   * What the controls and pages under `/emulator` demand, as the password of HTTP Basic or in `Authorization: Bearer`;
   * 16 to 256 characters of ASCII without spaces. The checkout of customers and endpoints with an access token do not
   * demand it. Default: a random one if others can reach the emulator, otherwise none.
   */
  readonly controlToken?: string | undefined;
  /**
   * Whether webhook URLs may lead to this machine and to private networks although others can reach the emulator, and
   * may be `http://` in private networks. Default: false.
   */
  readonly allowPrivateWebhooks?: boolean | undefined;
  /** Whether it starts with `NODE_ENV=production`. Default: false. */
  readonly allowProduction?: boolean | undefined;
  /** The sandbox host's port, 0 to 65535; 0 takes a free one. Default: 0. */
  readonly port?: number | undefined;
  /** The production host's port, 0 to 65535; 0 takes a free one. Default: 0. */
  readonly productionPort?: number | undefined;
  /** The sandbox's URL as others see it, where that is not `http://host:port`; without a path. */
  readonly publicUrl?: string | undefined;
  /** The production host's URL as others see it; without a path. */
  readonly productionPublicUrl?: string | undefined;
  /**
   * The service's name: deliveries carry `User-Agent: <serviceName>-Webhook/1.0`. 1 to 64 letters,
   * digits, `.`, `_` or `-`. Default: `PaymentsEmulator`.
   */
  readonly serviceName?: string | undefined;
  /** Fixes ids, generated secrets, tokens and fault dice, so that a run repeats. Default: random. */
  readonly seed?: string | number | undefined;
  /**
   * Whether ids of transactions, events, deliveries and tokens differ between starts and resets of
   * one seed, as those of a real service do. Credentials and fault dice repeat either way. Default:
   * false; the command sets it, so that an application with a durable inbox does not take the events
   * of a restarted emulator for duplicates.
   */
  readonly freshIds?: boolean | undefined;
  /** Seconds a token lives, 1 to 86,400. Default: 3599 (section 8 of the service's page). */
  readonly tokenLifetime?: number | undefined;
  /** A transaction's status before it is complete. Default: `pending`. */
  readonly pendingStatus?: string | undefined;
  /** A declined transaction's status; 1 to 64 characters, not `complete` or the pending one. Default: `failed`. */
  readonly failedStatus?: string | undefined;
  /** Milliseconds a receiver has to answer a delivery, 1 to 600,000. Default: 30,000, like the service. */
  readonly deliveryTimeout?: number | undefined;
  /**
   * Milliseconds before each further attempt of a failed delivery, at most 20 of them, each at most
   * 86,400,000. The service's schedule is not shown. Default: `[]`, none.
   */
  readonly redeliver?: readonly number[] | undefined;
  /** How many deliveries may be under way at once, 1 to 10,000. Default: 50. */
  readonly concurrency?: number | undefined;
  /** How many attempts the delivery log holds, 1 to 1,000,000. Default: 1,000. */
  readonly logSize?: number | undefined;
  /** How many transactions are kept, 1 to 1,000,000; the oldest leaves first. Default: 10,000. */
  readonly maxTransactions?: number | undefined;
  /** How many companies there may be, 1 to 100,000. Default: 1,000. */
  readonly maxCompanies?: number | undefined;
  /** The first company's faults. Default: none. */
  readonly faults?: FaultPlan | undefined;
  /** The answer bodies the service's page does not show. Default: the emulator's own. */
  readonly shapes?: Partial<AnswerShapes> | undefined;
  /** Told of each delivery attempt that has ended. What it throws is logged. */
  readonly onDelivery?: ((delivery: DeliveryRecord) => void) | undefined;
  /** Default: the machine's clock. */
  readonly clock?: EmulatorClock | undefined;
  /**
   * Sends the deliveries. Default: Node's `fetch`, or one that connects to public addresses only. Your own has to check
   * addresses itself.
   */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Resolves the host names of webhook URLs that must be public. Default: Node's `dns.lookup`. */
  readonly lookup?: LookupAll | undefined;
}

/** The options once complete and checked. */
export type ResolvedEmulatorOptions = Readonly<
  Required<{
    [
      K in Exclude<
        keyof PaymentsEmulatorOptions,
        | keyof NewCompany
        | keyof Exposure
        | 'allowPrivateWebhooks'
        | 'allowProduction'
        | 'lookup'
        | 'publicUrl'
        | 'productionPublicUrl'
        | 'seed'
        | 'shapes'
      >
    ]: NonNullable<PaymentsEmulatorOptions[K]>;
  }>
> &
  Exposure & {
    readonly company: NewCompany;
    readonly lookup: LookupAll | undefined;
    readonly publicUrl: string | undefined;
    readonly productionPublicUrl: string | undefined;
    readonly seed: string | number | undefined;
    readonly shapes: AnswerShapes;
  };

const COMPANY_FIELDS = Object.keys(new NewCompany()) as (keyof NewCompany)[];

/**
 * Complete, checked and frozen options.
 *
 * @throws EmulatorInputError naming each option at fault, with its unit and bounds.
 */
export function resolveOptions(
  options: PaymentsEmulatorOptions = {},
  environment = process.env['NODE_ENV'],
): ResolvedEmulatorOptions {
  const problems: string[] = [];
  const exposure = resolveExposure(options, environment, problems);
  const { publicOnly } = exposure.webhookPolicy;
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
    rule: RegExp,
    says: string,
    otherwise: string,
  ): string => {
    const value = options[name] ?? otherwise;
    if (typeof value === 'string' && rule.test(value)) return value;
    problems.push(`${name} must be ${says}`);
    return otherwise;
  };
  const url = (name: 'publicUrl' | 'productionPublicUrl'): string | undefined => {
    const value = options[name];
    if (value === undefined) return undefined;
    const parsed = URL.parse(value);
    // The pages link to each other from the root.
    const plain = parsed?.href === `${parsed?.origin}/` && /^https?:$/.test(parsed.protocol);
    if (plain) return value.replace(/\/+$/, '');
    problems.push(
      `${name} must be an http:// or https:// URL without a path or credentials, such as http://emulator:4010`,
    );
    return undefined;
  };
  const resolved = {
    ...exposure,
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
    pendingStatus: text(
      'pendingStatus',
      /^(?!complete$).{1,64}$/,
      '1 to 64 characters other than "complete"',
      'pending',
    ),
    failedStatus: text(
      'failedStatus',
      /^(?!complete$).{1,64}$/,
      '1 to 64 characters other than "complete"',
      'failed',
    ),
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
    shapes: { ...defaultShapes, ...options.shapes },
    onDelivery: options.onDelivery ?? ((): void => undefined),
    clock: options.clock ?? systemClock,
    fetch: options.fetch ?? (publicOnly ? publicFetch(options) : globalThis.fetch),
    lookup: options.lookup,
    company: companyOf(options),
  };
  if (resolved.failedStatus === resolved.pendingStatus) {
    problems.push('failedStatus must not be the same as pendingStatus');
  }
  if (problems.length > 0) throw new EmulatorInputError(problems);
  checkInput(NewCompany, resolved.company);
  validateFaultPlan(resolved.faults);
  validateFaultPlan({ delivery: { redeliver: resolved.redeliver } });
  return Object.freeze(resolved);
}

interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly default: number;
}

function companyOf(options: PaymentsEmulatorOptions): NewCompany {
  const given = COMPANY_FIELDS.map((field) => [field, options[field]]);
  return { ...Object.fromEntries(given), companyId: options.companyId ?? DEFAULT_COMPANY };
}
