import { registerAs } from '@nestjs/config';
import { plainToInstance } from 'class-transformer';
import { IsIn, IsUrl, Matches, ValidateIf, validateSync } from 'class-validator';
import type { PaymentsModuleOptions } from './payments.options.js';
import { optionsInvalid } from './payments.validation.js';

/** Text that is there and has no white space around it, such as a line break read from a file. */
const GIVEN = /^\S(.*\S)?$/s;
const TRIMMED = 'without white space around it';

/** The environment variables that {@link paymentsConfig} reads. */
export class PaymentsEnvironment {
  /** Address of the payments service, e.g. `https://payments.example.com`. Required. */
  @IsUrl(
    { protocols: ['http', 'https'], require_protocol: true, require_tld: false },
    { message: 'PAYMENTS_BASE_URL must be an address such as https://payments.example.com' },
  )
  PAYMENTS_BASE_URL!: string;

  /** Client id of the company. Required. */
  @Matches(GIVEN, {
    message: `PAYMENTS_CLIENT_ID must be set to the client id the service gave you, ${TRIMMED}`,
  })
  PAYMENTS_CLIENT_ID!: string;

  /** Client secret of the company. Required. */
  @Matches(GIVEN, {
    message: `PAYMENTS_CLIENT_SECRET must be set to the client secret the service gave you, ${TRIMMED}`,
  })
  PAYMENTS_CLIENT_SECRET!: string;

  /** Webhook secret of the company. Required. */
  @Matches(GIVEN, {
    message: `PAYMENTS_WEBHOOK_SECRET must be set to the secret that signs your webhooks, ${TRIMMED}`,
  })
  PAYMENTS_WEBHOOK_SECRET!: string;

  /** The webhook secret before that one, while it is being rotated. Empty: none. */
  @ValidateIf(({ PAYMENTS_WEBHOOK_SECRET_PREVIOUS: previous }: PaymentsEnvironment) => !!previous)
  @Matches(GIVEN, {
    message: `PAYMENTS_WEBHOOK_SECRET_PREVIOUS must be the former webhook secret, ${TRIMMED}`,
  })
  PAYMENTS_WEBHOOK_SECRET_PREVIOUS?: string;

  /** `true` allows an `http:` address beyond loopback. Empty: `false`. */
  @ValidateIf(({ PAYMENTS_ALLOW_INSECURE_HTTP: allow }: PaymentsEnvironment) => !!allow)
  @IsIn(['true', 'false'], { message: 'PAYMENTS_ALLOW_INSECURE_HTTP must be true or false' })
  PAYMENTS_ALLOW_INSECURE_HTTP?: string;
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
export const paymentsConfig = registerAs('payments', (): PaymentsModuleOptions =>
  readPaymentsEnvironment(process.env),
);

/** What {@link paymentsConfig} does, for any set of variables. */
export function readPaymentsEnvironment(
  variables: Readonly<Record<string, string | undefined>>,
): PaymentsModuleOptions {
  const environment = plainToInstance(PaymentsEnvironment, { ...variables });
  const failures = validateSync(environment).flatMap(({ constraints }) =>
    Object.values(constraints ?? {}),
  );
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
