/**
 * Which of the two hosts: each has its own credentials, and a token of one does not work on the
 * other (section 5 of the service's page).
 */
export type Environment = 'sandbox' | 'production';

/** Both environments, the default first. */
export const ENVIRONMENTS: readonly Environment[] = ['sandbox', 'production'];

/** What a client exchanges for a token (section 5 of the service's page). */
export interface ClientCredentials {
  /** The Basic user name. Holds no colon, because Basic ends it at the first. */
  readonly clientId: string;
  /** The Basic password. */
  readonly clientSecret: string;
}

/** A company's webhook (section 2 of the service's page). One for both environments. */
export interface WebhookSettings {
  /** Where deliveries go: HTTPS, or plain HTTP on a loopback host. Nothing is sent while null. */
  readonly url: string | null;
  /** Signs every delivery. */
  readonly secret: string;
  /** Deliveries stop while this is false. */
  readonly active: boolean;
}

/** A company with everything a merchant configures. */
export interface CompanyCredentials extends ClientCredentials {
  readonly companyId: string;
  /** The sandbox credentials are `clientId` and `clientSecret` themselves; these are production's. */
  readonly production: ClientCredentials;
  /** The webhook's secret, the same as `webhook.secret`. */
  readonly webhookSecret: string;
  readonly webhook: WebhookSettings;
}

/** A company as the emulator holds it. */
export interface Company {
  readonly companyId: string;
  readonly credentials: Record<Environment, ClientCredentials>;
  webhook: WebhookSettings;
  /** The secret before the last rotation; what the `oldSecret` fault signs with. */
  previousWebhookSecret: string | undefined;
  /** Raised to revoke: a token carries the generation it was issued in. */
  readonly tokenGeneration: Record<Environment, number>;
}

/** A company in the form that is handed out. */
export function toCredentials(company: Company): CompanyCredentials {
  return {
    companyId: company.companyId,
    ...company.credentials.sandbox,
    production: { ...company.credentials.production },
    webhookSecret: company.webhook.secret,
    webhook: { ...company.webhook },
  };
}
