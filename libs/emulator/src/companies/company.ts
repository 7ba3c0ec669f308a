/**
 * An environment of the service. Each environment has its own host and credentials, and rejects the tokens of the other
 * environment.
 */
export type Environment = 'sandbox' | 'production';

/** Both environments of the service. The first is the default. */
export const ENVIRONMENTS: readonly Environment[] = ['sandbox', 'production'];

/** The credentials that a client exchanges for a token. */
export interface ClientCredentials {
  /** The user name of HTTP Basic. Contains no colon, because HTTP Basic ends the user name at the first colon. */
  readonly clientId: string;
  /** The password of HTTP Basic. */
  readonly clientSecret: string;
}

/** The settings of a company's webhook. Both environments use the same webhook. */
export interface WebhookSettings {
  /**
   * The URL to which the emulator sends webhook requests: HTTPS, or plain HTTP on a loopback host. If null, the
   * emulator sends none.
   */
  readonly url: string | null;
  /** The secret with which the emulator signs every webhook request. */
  readonly secret: string;
  /** Whether the emulator sends events to the webhook. */
  readonly active: boolean;
}

/** A company with all its credentials and settings. */
export interface CompanyCredentials extends ClientCredentials {
  readonly companyId: string;
  /**
   * The production credentials. The fields `clientId` and `clientSecret` of the company are the sandbox credentials.
   */
  readonly production: ClientCredentials;
  /** The secret of the webhook; the same value as `webhook.secret`. */
  readonly webhookSecret: string;
  readonly webhook: WebhookSettings;
}

export interface Company {
  readonly companyId: string;
  readonly credentials: Record<Environment, ClientCredentials>;
  webhook: WebhookSettings;
  /**
   * The secret that was valid before the last rotation. With the fault `oldSecret`, the emulator signs deliveries with
   * this secret.
   */
  previousWebhookSecret: string | undefined;
  /**
   * A token contains the generation in which it was issued. Increasing the number of an environment revokes all tokens
   * that the company has got in this environment.
   */
  readonly tokenGeneration: Record<Environment, number>;
}

export function toCredentials(company: Company): CompanyCredentials {
  return {
    companyId: company.companyId,
    ...company.credentials.sandbox,
    production: { ...company.credentials.production },
    webhookSecret: company.webhook.secret,
    webhook: { ...company.webhook },
  };
}

/** Returns the prefix of the names of a company's settings, for example `MY_SHOP` for the id `my-shop`. */
export function settingsPrefix(companyId: string): string {
  return companyId.toUpperCase().replaceAll('-', '_');
}
