import { registerAs } from '@nestjs/config';
import { plainToInstance, Type } from 'class-transformer';
import { IsIn, IsInt, IsOptional, IsPort, Matches, Max, Min, validateSync } from 'class-validator';
import { checkPaymentsEnvironment } from 'nestjs-payments';

const LEASE = {
  message: 'SHOP_LEASE_MS must be a whole number of milliseconds from 1000 to 3600000',
};

const PASSWORD = {
  message: 'SHOP_CONSOLE_PASSWORD must be 12 to 200 characters, none of them a control character',
};

/** The shop's own environment variables. The payments module has more, which it reads itself. */
export class ShopEnvironment {
  /** Port to listen on; 0 takes a free one. Default 3000. */
  @IsPort({ message: 'PORT must be a whole number from 0 to 65535; 0 takes a free port' })
  PORT: string = '3000';

  /** Address to listen on. Default 127.0.0.1, this machine alone. */
  @Matches(/^\S+$/, { message: 'SHOP_HOST must be an address such as 127.0.0.1 or 0.0.0.0' })
  SHOP_HOST: string = '127.0.0.1';

  /** What Nest stands on. Default `express`. */
  @IsIn(['express', 'fastify'], { message: 'SHOP_ADAPTER must be express or fastify' })
  SHOP_ADAPTER: 'express' | 'fastify' = 'express';

  /** Folder of the shop's file `shop.db`, made where it is missing. Default `./shop-data`. */
  @Matches(/^[^\0]+$/, { message: 'SHOP_DATA must be the path of a folder' })
  SHOP_DATA: string = 'shop-data';

  /** The PostgreSQL database to use instead of the file. */
  @IsOptional()
  @Matches(/^postgres(ql)?:\/\/(?=.)/, {
    message: 'DATABASE_URL must be an address such as postgres://shop:password@localhost/shop',
  })
  DATABASE_URL?: string;

  /** Milliseconds without a heartbeat after which a shop counts as dead and others book its payments. Default 10000. */
  @Type(() => Number)
  @Min(1000, LEASE)
  @Max(3_600_000, LEASE)
  @IsInt(LEASE)
  SHOP_LEASE_MS: number = 10_000;

  /** Where checkout invoices are created. The service's path is not shown; the default is the emulator's. */
  @Matches(/^(\/(?!\.{1,2}(\/|$))[\w.~!$&'()*+,;=:@-]+)+\/?$/, {
    message:
      'PAYMENTS_CHECKOUT_PATH must be a path on the payments service, such as /emulator/checkout-invoices',
  })
  PAYMENTS_CHECKOUT_PATH: string = '/emulator/checkout-invoices';

  /** Status of a transaction that is paid. Default `complete`, the one value the service's page shows. */
  @Matches(/\S/, { message: 'PAYMENTS_PAID_STATUS must be a status such as complete' })
  PAYMENTS_PAID_STATUS: string = 'complete';

  /** Opens the inbox's console to whoever knows it. Without one there is no console. */
  @IsOptional()
  @Matches(/^\P{Cc}{12,200}$/u, PASSWORD)
  SHOP_CONSOLE_PASSWORD?: string;

  /** The name that goes with it. Default `operator`. */
  @Matches(/^[^:\p{Cc}]{1,100}$/u, {
    message:
      'SHOP_CONSOLE_USER must be 1 to 100 characters, none of them a colon or a control character',
  })
  SHOP_CONSOLE_USER: string = 'operator';

  /** Where the console is. Default `/console`. */
  @Matches(/^\/(?!(o|orders|books|buy|assets|ledger|inbox|webhooks)(\/|$))[\w~-]+(\/[\w~-]+)*$/, {
    message: 'SHOP_CONSOLE_PATH must be a path of its own, such as /console',
  })
  SHOP_CONSOLE_PATH: string = '/console';
}

/** The shop's own settings, checked. */
export interface ShopSettings {
  readonly port: number;
  readonly host: string;
  readonly adapter: 'express' | 'fastify';
  /** Where `shop.db` is, unless there is a `databaseUrl`. */
  readonly dataFolder: string;
  readonly databaseUrl: string | undefined;
  readonly leaseMs: number;
  readonly checkoutPath: string;
  readonly paidStatus: string;
  /** The inbox's console; `null` where there is none. */
  readonly console: ConsoleSettings | null;
}

/** Where the inbox's console is, and who may use it. */
export interface ConsoleSettings {
  readonly path: string;
  readonly user: string;
  readonly password: string;
}

/** Settings that are missing or wrong: a line for each, and the value of none, since it may be a secret. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';

  constructor(readonly problems: readonly string[]) {
    super(problems.join('; '));
  }
}

/** The shop's settings, for injection: `@Inject(shopConfig.KEY) settings: ShopSettings`. */
export const shopConfig = registerAs('shop', () => readShopEnvironment(process.env));

/** @throws SettingsError listing every variable that is missing or wrong, the payments module's included. */
export function readShopEnvironment(
  variables: Readonly<Record<string, string | undefined>>,
): ShopSettings {
  // An empty variable is how many tools write "not set".
  const given = Object.entries(variables).filter(([, value]) => value?.trim());
  const environment = plainToInstance(ShopEnvironment, Object.fromEntries(given));
  const failures = validateSync(environment, { stopAtFirstError: true });
  // Both are checked before either is reported, so that one start lists everything that is wrong.
  const problems = [
    ...checkPaymentsEnvironment(variables),
    ...failures.flatMap(({ constraints = {} }) => Object.values(constraints)),
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
    console: consoleOf(environment),
  });
}

function consoleOf(environment: ShopEnvironment): ConsoleSettings | null {
  const { SHOP_CONSOLE_PASSWORD: password } = environment;
  if (password === undefined) return null;
  const { SHOP_CONSOLE_USER: user, SHOP_CONSOLE_PATH: path } = environment;
  return Object.freeze({ path, user, password });
}
