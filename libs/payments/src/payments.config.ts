import { createRequire } from 'node:module';
import type { DynamicModule } from '@nestjs/common';
import type { ConfigFactoryKeyHost } from '@nestjs/config';
import type * as validator from 'class-validator';
import type { PaymentsModuleOptions } from './payments.options.js';
import { optionsInvalid } from './payments.validation.js';

/** Text that is there and has no white space around it, such as a line break read from a file. */
const GIVEN = /^\S(.*\S)?$/s;
const TRIMMED = 'without white space around it';

type Validator = typeof validator;

/**
 * class-validator takes longer to load than this package: it is loaded with the first environment that is made,
 * and never where the options come from elsewhere. Not with `import()`, as an environment is read at once.
 */
function loadValidator(): Validator {
  return createRequire(import.meta.url)('class-validator') as Validator;
}

/** Rules that are declared when class-validator is there. */
const waiting: ((loaded: Validator) => void)[] = [];

function rule(of: (loaded: Validator) => PropertyDecorator): PropertyDecorator {
  return (target, property) => {
    waiting.push((loaded) => of(loaded)(target, property));
  };
}

/**
 * The environment variables that {@link paymentsConfig} reads. A class that extends it has its rules, for the
 * `validate` of class-validator, and adds its own.
 */
export class PaymentsEnvironment {
  /** Address of the payments service, e.g. `https://payments.example.com`. Required. */
  @rule(({ IsUrl }) =>
    IsUrl(
      { protocols: ['http', 'https'], require_protocol: true, require_tld: false },
      { message: 'PAYMENTS_BASE_URL must be an address such as https://payments.example.com' },
    ),
  )
  PAYMENTS_BASE_URL!: string;

  /** Client id of the company. Required. */
  @rule(({ Matches }) =>
    Matches(GIVEN, {
      message: `PAYMENTS_CLIENT_ID must be set to the client id the service gave you, ${TRIMMED}`,
    }),
  )
  PAYMENTS_CLIENT_ID!: string;

  /** Client secret of the company. Required. */
  @rule(({ Matches }) =>
    Matches(GIVEN, {
      message: `PAYMENTS_CLIENT_SECRET must be set to the client secret the service gave you, ${TRIMMED}`,
    }),
  )
  PAYMENTS_CLIENT_SECRET!: string;

  /** Webhook secret of the company. Required. */
  @rule(({ Matches }) =>
    Matches(GIVEN, {
      message: `PAYMENTS_WEBHOOK_SECRET must be set to the secret that signs your webhooks, ${TRIMMED}`,
    }),
  )
  PAYMENTS_WEBHOOK_SECRET!: string;

  /** The webhook secret before that one, while it is being rotated. Empty: none. */
  @rule(({ ValidateIf }) =>
    ValidateIf(({ PAYMENTS_WEBHOOK_SECRET_PREVIOUS: previous }: PaymentsEnvironment) => !!previous),
  )
  @rule(({ Matches }) =>
    Matches(GIVEN, {
      message: `PAYMENTS_WEBHOOK_SECRET_PREVIOUS must be the former webhook secret, ${TRIMMED}`,
    }),
  )
  PAYMENTS_WEBHOOK_SECRET_PREVIOUS?: string;

  /** `true` allows an `http:` address beyond loopback. Empty: `false`. */
  @rule(({ ValidateIf }) =>
    ValidateIf(({ PAYMENTS_ALLOW_INSECURE_HTTP: allow }: PaymentsEnvironment) => !!allow),
  )
  @rule(({ IsIn }) =>
    IsIn(['true', 'false'], { message: 'PAYMENTS_ALLOW_INSECURE_HTTP must be true or false' }),
  )
  PAYMENTS_ALLOW_INSECURE_HTTP?: string;

  constructor() {
    if (waiting.length === 0) return;
    const loaded = loadValidator();
    for (const declare of waiting.splice(0)) declare(loaded);
  }
}

/**
 * The options of one company from the environment, for `@nestjs/config`. All a twelve-factor application
 * writes is:
 *
 * @example
 * ```ts
 * PaymentsModule.forRootAsync(paymentsConfig.asProvider())
 * ```
 *
 * @throws PaymentsError `options_invalid`, listing every variable that is missing or wrong, never a value.
 */
export const paymentsConfig = configuration('payments', () => readPaymentsEnvironment(process.env));

/**
 * Makes what `registerAs` of `@nestjs/config` makes, without loading that package: a quarter of what this one takes to
 * load, for nothing where the options come from elsewhere.
 */
function configuration<T extends object>(
  name: string,
  factory: () => T,
): (() => T) & ConfigFactoryKeyHost<T> {
  const key = `CONFIGURATION(${name})`;
  const feature = async (): Promise<DynamicModule> => {
    const { ConfigModule } = await import('@nestjs/config');
    return ConfigModule.forFeature(factory);
  };
  return Object.defineProperties(factory, {
    KEY: { value: key },
    PARTIAL_CONFIGURATION_KEY: { value: name },
    asProvider: {
      value: () => ({ imports: [feature()], useFactory: (config: T) => config, inject: [key] }),
    },
  }) as (() => T) & ConfigFactoryKeyHost<T>;
}

/** What {@link paymentsConfig} does, for any set of variables. */
export function readPaymentsEnvironment(
  variables: Readonly<Record<string, string | undefined>>,
): PaymentsModuleOptions {
  const environment = Object.assign(new PaymentsEnvironment(), variables);
  const failures = loadValidator()
    .validateSync(environment)
    .flatMap(({ constraints }) => Object.values(constraints ?? {}));
  if (failures.length > 0) {
    throw optionsInvalid(`the environment is not complete: ${failures.join('; ')}.`);
  }
  const previous = environment.PAYMENTS_WEBHOOK_SECRET_PREVIOUS;
  return {
    baseUrl: environment.PAYMENTS_BASE_URL,
    clientId: environment.PAYMENTS_CLIENT_ID,
    clientSecret: environment.PAYMENTS_CLIENT_SECRET,
    webhookSecret: previous
      ? [environment.PAYMENTS_WEBHOOK_SECRET, previous]
      : environment.PAYMENTS_WEBHOOK_SECRET,
    allowInsecureHttp: environment.PAYMENTS_ALLOW_INSECURE_HTTP === 'true',
  };
}
