import { inspect } from 'node:util';
import type { PaymentsModuleOptions } from './payments-options.js';
import { isBlank, optionsInvalid, surroundingFault } from './errors/option-checks.js';

/** The required environment variables, each with a description of its value. */
export const REQUIRED_VARIABLES = {
  PAYMENTS_BASE_URL:
    'the address of the payments service, for example https://payments.example.com',
  PAYMENTS_CLIENT_ID: 'the client id that the payments service gave you',
  PAYMENTS_CLIENT_SECRET: 'the client secret that the payments service gave you',
  PAYMENTS_WEBHOOK_SECRET: 'the secret that signs your webhooks',
};

/**
 * Reads the options of one company from environment variables:
 *
 * | variable | option |
 * |---|---|
 * | `PAYMENTS_BASE_URL` | `baseUrl`; required |
 * | `PAYMENTS_CLIENT_ID` | `clientId`; required |
 * | `PAYMENTS_CLIENT_SECRET` | `clientSecret`; required |
 * | `PAYMENTS_WEBHOOK_SECRET` | `webhookSecret`; required |
 * | `PAYMENTS_WEBHOOK_SECRET_PREVIOUS` | the second `webhookSecret`, during a rotation; empty: none |
 * | `PAYMENTS_ALLOW_INSECURE_HTTP` | `allowInsecureHttp`: `true` or `false`; empty: `false` |
 *
 * To combine these options with others, spread the result. `JSON.stringify` and `util.inspect` do not show the secrets
 * of the result, but they show the secrets of a copy that a spread makes.
 *
 * @throws PaymentsError `options_invalid`. The message lists every variable that is missing or wrong, and
 *   contains no value.
 * @example
 * ```ts
 * PaymentsModule.forRootAsync({
 *   useFactory: () => ({ ...readPaymentsEnvironment(), inbox: sqliteInbox({ file: 'inbox.db' }) }),
 * })
 * ```
 */
export function readPaymentsEnvironment(
  variables: Readonly<Record<string, string | undefined>> = process.env,
): Readonly<PaymentsModuleOptions> {
  const faults = checkPaymentsEnvironment(variables);
  if (faults.length > 0) {
    throw optionsInvalid(`environment variables are missing or wrong. ${faults.join(' ')}`);
  }
  const required = variables as Readonly<Record<keyof typeof REQUIRED_VARIABLES, string>>;
  const secret = required.PAYMENTS_WEBHOOK_SECRET;
  const previous = variables['PAYMENTS_WEBHOOK_SECRET_PREVIOUS'];
  const webhookSecret = previous === undefined || isBlank(previous) ? secret : [secret, previous];
  return withSecrets(
    {
      baseUrl: required.PAYMENTS_BASE_URL,
      clientId: required.PAYMENTS_CLIENT_ID,
      allowInsecureHttp: variables['PAYMENTS_ALLOW_INSECURE_HTTP'] === 'true',
    },
    { clientSecret: required.PAYMENTS_CLIENT_SECRET, webhookSecret },
  );
}

/**
 * Adds the secrets as getters, so that a spread copies them. `JSON.stringify` and `util.inspect` show the `visible`
 * options only.
 */
function withSecrets(
  visible: PaymentsModuleOptions,
  secrets: Pick<PaymentsModuleOptions, 'clientSecret' | 'webhookSecret'>,
): Readonly<PaymentsModuleOptions> {
  const show = { value: () => ({ ...visible }) };
  return Object.defineProperties(
    { ...visible },
    {
      clientSecret: { get: () => secrets.clientSecret, enumerable: true },
      webhookSecret: { get: () => secrets.webhookSecret, enumerable: true },
      // These two methods are not enumerable, so that a spread does not copy them.
      toJSON: show,
      [inspect.custom]: show,
    },
  );
}

/**
 * Returns the faults for which {@link readPaymentsEnvironment} would throw, for an application that checks its own
 * variables at the same time. Each fault is one or two sentences that start with the name of a variable and do not
 * contain its value. Empty if all variables are valid.
 */
export function checkPaymentsEnvironment(
  variables: Readonly<Record<string, string | undefined>>,
): string[] {
  const faults: string[] = [];
  const report = (name: string, fault: string | undefined) => {
    if (fault !== undefined) faults.push(`${name} ${fault}`);
  };
  for (const [name, content] of Object.entries(REQUIRED_VARIABLES)) {
    const value = variables[name];
    if (value === undefined || isBlank(value)) {
      report(name, `is not set. Set it to ${content}.`);
    } else {
      report(name, surroundingFault(value) ?? addressFault(name, value, content));
    }
  }
  const previous = variables['PAYMENTS_WEBHOOK_SECRET_PREVIOUS'] ?? '';
  if (!isBlank(previous)) report('PAYMENTS_WEBHOOK_SECRET_PREVIOUS', surroundingFault(previous));
  if (!['', 'true', 'false'].includes(variables['PAYMENTS_ALLOW_INSECURE_HTTP'] ?? '')) {
    report('PAYMENTS_ALLOW_INSECURE_HTTP', 'must be true or false.');
  }
  return faults;
}

function addressFault(name: string, value: string, content: string): string | undefined {
  if (name !== 'PAYMENTS_BASE_URL') return undefined;
  const isAddress = URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
  return isAddress ? undefined : `is not an http or https address. Set it to ${content}.`;
}

/**
 * Configures the module from the environment variables of {@link readPaymentsEnvironment}. The variables are read when
 * the application boots, after `ConfigModule.forRoot()` of `@nestjs/config` has loaded a `.env` file. The package
 * `@nestjs/config` is optional.
 *
 * `ConfigModule.forRoot({ load: [paymentsConfig] })` also makes the options available as
 * `config.get('payments')`. `JSON.stringify` and `util.inspect` do not show their secrets, but every provider that
 * injects the `ConfigService` can read `config.get('payments.clientSecret')`.
 *
 * @throws PaymentsError `options_invalid`, at boot.
 * @example
 * ```ts
 * PaymentsModule.forRootAsync(paymentsConfig.asProvider())
 * ```
 */
export const paymentsConfig = Object.assign(() => ({ payments: readPaymentsEnvironment() }), {
  /** Returns the argument of `PaymentsModule.forRootAsync()`. */
  asProvider: () => ({ useFactory: () => readPaymentsEnvironment() }),
});
