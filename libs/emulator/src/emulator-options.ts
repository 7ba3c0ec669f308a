import type { NewCompany } from './companies/company-inputs.js';
import type { DeliveryAttempt } from './deliveries/delivery-attempt.js';
import type { LookupAll } from './deliveries/public-fetch.js';
import type { FaultPlan } from './faults/fault-plan.js';
import type { ResponseShapes } from './http/response-shapes.js';
import type { NetworkAccess, NetworkOptions } from './network-access.js';
import type { EmulatorClock } from './runtime/emulator-clock.js';

/**
 * Options of an emulator. All options are optional. The fields of {@link NewCompany} describe the company that the
 * emulator starts with. The id of this company defaults to `default`. The fields of {@link NetworkOptions} set the
 * emulator's addresses, and which machines can reach them.
 */
export interface PaymentsEmulatorOptions extends NewCompany, NetworkOptions {
  /**
   * Ids of the companies that the emulator starts with, 1 to 100, for an application with several companies. An id
   * starts with a letter, followed by up to 63 letters, digits, `_` or `-`. Ids that differ only in upper and lower
   * case, or in `-` and `_`, count as equal, because they give the same names of environment variables. The webhook URL
   * of each company is `webhookUrl`, a slash and the company's id. The emulator generates the credentials of these
   * companies. Default: one company with the id `companyId`.
   */
  readonly companies?: readonly string[] | undefined;
  /** Port of the sandbox host, 0 to 65535; 0 selects a free port. Default: 0. */
  readonly port?: number | undefined;
  /** Port of the production host, 0 to 65535; 0 selects a free port. Default: 0. */
  readonly productionPort?: number | undefined;
  /**
   * The service's name in the header `User-Agent: <serviceName>-Webhook/1.0` of webhook requests. 1 to 64 letters,
   * digits, `.`, `_` or `-`. Default: `PaymentsEmulator`.
   */
  readonly serviceName?: string | undefined;
  /**
   * The seed of ids, generated secrets, tokens and random faults. The same seed gives the same values. Default: random.
   */
  readonly seed?: string | number | undefined;
  /**
   * Whether the ids of transactions, events, deliveries and tokens differ after each start and reset, even with the
   * same seed. The ids of a real service never repeat. With either value of this option, the same seed gives the same
   * credentials and random faults after each start. Default: false. The command `payments-emulator` sets this option to
   * true, so that an application with a durable inbox does not treat the events of a restarted emulator as duplicates.
   */
  readonly freshIds?: boolean | undefined;
  /** Lifetime of tokens in seconds, 1 to 86,400. Default: 3599, as in the service. */
  readonly tokenLifetime?: number | undefined;
  /** Status of a transaction before it is complete; 1 to 64 characters, not `complete`. Default: `pending`. */
  readonly pendingStatus?: string | undefined;
  /** Status of a declined transaction; 1 to 64 characters, not `complete` or `pendingStatus`. Default: `failed`. */
  readonly failedStatus?: string | undefined;
  /**
   * Code of the currency that the pages show before amounts; three capital letters. The service's fields contain no
   * currency, so this option changes no event and no response. Default: `KES`.
   */
  readonly currency?: string | undefined;
  /**
   * Milliseconds within which a receiver must respond to a webhook request, 1 to 600,000. Default: 30,000, as in the
   * service.
   */
  readonly deliveryTimeout?: number | undefined;
  /**
   * Milliseconds before each further attempt of a failed delivery; at most 20 values, each at most 86,400,000. The
   * service does not document its redelivery schedule. Default: `[]`, which means no further attempts.
   */
  readonly redeliver?: readonly number[] | undefined;
  /** Maximum number of concurrent deliveries, 1 to 10,000. Default: 50. */
  readonly concurrency?: number | undefined;
  /** Maximum number of attempts in the delivery log, 1 to 1,000,000. Default: 1,000. */
  readonly logSize?: number | undefined;
  /**
   * Maximum number of transactions, 1 to 1,000,000. If there are more, the emulator removes the oldest transaction.
   * Default: 10,000.
   */
  readonly maxTransactions?: number | undefined;
  /** Maximum number of companies, 1 to 100,000. Default: 1,000. */
  readonly maxCompanies?: number | undefined;
  /** Faults that are on for the first company when the emulator starts. Default: none. */
  readonly faults?: FaultPlan | undefined;
  /** Response bodies that the service does not document. Default: the emulator's own response bodies. */
  readonly shapes?: Partial<ResponseShapes> | undefined;
  /**
   * A function that the emulator calls with each delivery attempt that has ended. If the function throws an error, the
   * emulator logs the error. Default: none.
   */
  readonly onDelivery?: ((delivery: DeliveryAttempt) => void) | undefined;
  /** The clock that the emulator uses for all lifetimes, waits and timestamps. Default: the system clock. */
  readonly clock?: EmulatorClock | undefined;
  /**
   * The function that sends the deliveries. Default: Node's `fetch`. If webhook URLs must be public, the default
   * function rejects connections to addresses that are not public. A custom function must check the addresses itself.
   */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** The function that resolves the host names of webhook URLs that must be public. Default: Node's `dns.lookup`. */
  readonly lookup?: LookupAll | undefined;
}

export type ResolvedEmulatorOptions = Readonly<
  Required<{
    [
      K in Exclude<
        keyof PaymentsEmulatorOptions,
        | keyof NewCompany
        | 'companies'
        | keyof NetworkAccess
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
  NetworkAccess & {
    /** The companies that the emulator starts with, at least one. */
    readonly companies: readonly NewCompany[];
    readonly lookup: LookupAll | undefined;
    readonly publicUrl: string | undefined;
    readonly productionPublicUrl: string | undefined;
    readonly seed: string | number | undefined;
    readonly shapes: ResponseShapes;
  };
