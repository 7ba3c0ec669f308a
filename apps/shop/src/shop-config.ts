import { registerAs } from '@nestjs/config';
import { plainToInstance, Type } from 'class-transformer';
import {
  IsIn,
  IsInt,
  IsOptional,
  IsPort,
  Matches,
  Max,
  Min,
  ValidateBy,
  validateSync,
} from 'class-validator';
import { checkPaymentsEnvironment } from 'nestjs-payments';

const LEASE = {
  message: 'SHOP_LEASE_MS must be a whole number of milliseconds from 1000 to 3600000',
};

/** A path without the segments `.` and `..`. */
const PATH = /^(\/(?!\.{1,2}(\/|$))[\w.~!$&'()*+,;=:@-]+)+\/?$/;

const PASSWORD = {
  message: 'SHOP_CONSOLE_PASSWORD must be 12 to 200 characters, none of them a control character',
};

/** Accepts ascending delays in milliseconds, separated by commas. */
function IsSchedule(): PropertyDecorator {
  const validate = (value: unknown): boolean => {
    const delays = String(value).split(',').map(Number);
    return (
      /^\d+(,\d+)*$/.test(String(value)) &&
      delays.length <= 100 &&
      delays.every((ms, at) => ms >= 100 && ms <= 86_400_000 && ms > (delays[at - 1] ?? 0))
    );
  };
  const message =
    'SHOP_POLL_SCHEDULE_MS must be 1 to 100 ascending numbers of milliseconds from 100 to 86400000, separated by commas';
  return ValidateBy({ name: 'isSchedule', validator: { validate } }, { message });
}

/** The environment variables of the shop. The payments module reads and validates its own variables. */
export class ShopEnvironment {
  /** Port to listen on; 0 takes a free port. Default 3000. */
  @IsPort({ message: 'PORT must be a whole number from 0 to 65535; 0 takes a free port' })
  PORT: string = '3000';

  /** Address to listen on. Default 127.0.0.1, this machine only. */
  @Matches(/^\S+$/, { message: 'SHOP_HOST must be an address such as 127.0.0.1 or 0.0.0.0' })
  SHOP_HOST: string = '127.0.0.1';

  /** The HTTP adapter of Nest. Default `express`. */
  @IsIn(['express', 'fastify'], { message: 'SHOP_ADAPTER must be express or fastify' })
  SHOP_ADAPTER: 'express' | 'fastify' = 'express';

  /** Folder of the SQLite file `shop.db`, created if it is missing. Default `./shop-data`. */
  @Matches(/^[^\0]+$/, { message: 'SHOP_DATA must be the path of a folder' })
  SHOP_DATA: string = 'shop-data';

  /** Address of a PostgreSQL database, to use instead of SQLite. Default: none. */
  @IsOptional()
  @Matches(/^postgres(ql)?:\/\/(?=.)/, {
    message: 'DATABASE_URL must be an address such as postgres://shop:password@localhost/shop',
  })
  DATABASE_URL?: string;

  /** If a shop sends no heartbeat for this many milliseconds, other shops take over its deliveries. Default 10000. */
  @Type(() => Number)
  @Min(1000, LEASE)
  @Max(3_600_000, LEASE)
  @IsInt(LEASE)
  SHOP_LEASE_MS: number = 10_000;

  /**
   * Path of the API that creates checkout invoices. The service does not document this path. Default: the path of the
   * emulator.
   */
  @Matches(PATH, {
    message:
      'PAYMENTS_CHECKOUT_PATH must be a path on the payments service, such as /emulator/checkout-invoices',
  })
  PAYMENTS_CHECKOUT_PATH: string = '/emulator/checkout-invoices';

  /** Status of a paid transaction. Default `complete`, the only value that the service documents. */
  @Matches(/\S/, { message: 'PAYMENTS_PAID_STATUS must be a status such as complete' })
  PAYMENTS_PAID_STATUS: string = 'complete';

  /**
   * Status of a declined transaction. The service does not document this status. Default: `failed`, the status of the
   * emulator.
   */
  @Matches(/\S/, { message: 'PAYMENTS_DECLINED_STATUS must be a status such as failed' })
  PAYMENTS_DECLINED_STATUS: string = 'failed';

  /**
   * Path of the API that finds payments by `externalReference`. The service does not document this path. Default: the
   * path of the emulator.
   */
  @Matches(PATH, {
    message:
      'PAYMENTS_FIND_PATH must be a path on the payments service, such as /emulator/payments',
  })
  PAYMENTS_FIND_PATH: string = '/emulator/payments';

  /**
   * When the shop asks the service about a payment that no webhook request has reported. The value is a list of
   * ascending times, in milliseconds after the creation of the order, separated by commas. Default: the schedule of the
   * payments module, 15 seconds to 24 hours.
   */
  @IsOptional()
  @IsSchedule()
  SHOP_POLL_SCHEDULE_MS?: string;

  /** Password of the inbox console. Default: none, and the shop has no console. */
  @IsOptional()
  @Matches(/^\P{Cc}{12,200}$/u, PASSWORD)
  SHOP_CONSOLE_PASSWORD?: string;
}

/** The validated settings of the shop. */
export interface ShopSettings {
  readonly port: number;
  readonly host: string;
  readonly adapter: 'express' | 'fastify';
  /** Folder of the SQLite file `shop.db`. Not used if `databaseUrl` is set. */
  readonly dataFolder: string;
  readonly databaseUrl: string | undefined;
  readonly leaseMs: number;
  readonly checkoutPath: string;
  readonly paidStatus: string;
  readonly declinedStatus: string;
  readonly findPath: string;
  /**
   * When the shop asks the service about an expected payment, in milliseconds after the creation of the order; `null`
   * selects the default of the payments module.
   */
  readonly pollScheduleMs: readonly number[] | null;
  /** Password of the console of the inbox, or `null` if the shop has no console. */
  readonly consolePassword: string | null;
}

/**
 * An error about missing or invalid settings, with one line for each setting. The lines never contain a value, because
 * a value may be a secret.
 */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';

  constructor(readonly problems: readonly string[]) {
    super(problems.join('; '));
  }
}

/** The settings of the shop, to inject with `@Inject(shopConfig.KEY) settings: ShopSettings`. */
export const shopConfig = registerAs('shop', () => readShopEnvironment(process.env));

/**
 * Reads and validates the settings.
 *
 * @throws SettingsError with all missing or invalid variables, including those of the payments module.
 */
export function readShopEnvironment(
  variables: Readonly<Record<string, string | undefined>>,
): ShopSettings {
  // Many tools set a variable to an empty text if it has no value.
  const given = Object.entries(variables).filter(([, value]) => value?.trim());
  const environment = plainToInstance(ShopEnvironment, Object.fromEntries(given));
  const failures = validateSync(environment, { stopAtFirstError: true });
  // Both sets of variables are validated before the error is thrown, so that one start lists all problems.
  const problems = [
    ...checkPaymentsEnvironment(variables),
    ...failures.flatMap(({ constraints = {} }) => Object.values(constraints)),
    ...(environment.PAYMENTS_DECLINED_STATUS === environment.PAYMENTS_PAID_STATUS
      ? ['PAYMENTS_DECLINED_STATUS must be a status that differs from PAYMENTS_PAID_STATUS']
      : []),
  ];
  if (problems.length > 0) throw new SettingsError(problems);
  return Object.freeze({
    port: Number(environment.PORT),
    host: environment.SHOP_HOST,
    adapter: environment.SHOP_ADAPTER,
    dataFolder: environment.SHOP_DATA,
    databaseUrl: environment.DATABASE_URL,
    leaseMs: environment.SHOP_LEASE_MS,
    checkoutPath: environment.PAYMENTS_CHECKOUT_PATH,
    paidStatus: environment.PAYMENTS_PAID_STATUS,
    declinedStatus: environment.PAYMENTS_DECLINED_STATUS,
    findPath: environment.PAYMENTS_FIND_PATH,
    pollScheduleMs: environment.SHOP_POLL_SCHEDULE_MS?.split(',').map(Number) ?? null,
    consolePassword: environment.SHOP_CONSOLE_PASSWORD ?? null,
  });
}
