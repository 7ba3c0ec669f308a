import { EmulatorError, EmulatorInputError } from '../emulator-errors.js';
import { validateInput } from '../validate-input.js';
import type { RandomSource } from '../runtime/random-source.js';
import {
  ClientSecretInput,
  NewCompany,
  RevocationInput,
  WebhookInput,
  WebhookSecretInput,
} from './company-inputs.js';
import type { ClientCredentials, Company, Environment } from './company.js';
import { ENVIRONMENTS } from './company.js';
import type { WebhookPolicy } from './webhook-url.js';
import { webhookPolicyProblem } from './webhook-url.js';

/** The default id of the company that an emulator starts with. */
export const DEFAULT_COMPANY = 'default';

export class CompanyStore {
  readonly #companies = new Map<string, Company>();

  constructor(
    private readonly random: RandomSource,
    private readonly limit: number,
    private readonly policy: WebhookPolicy,
  ) {}

  create(input: unknown): Company {
    const given = validateInput(NewCompany, input);
    this.#requireAllowedUrl('webhookUrl', given.webhookUrl);
    const companyId = given.companyId ?? this.random.uuid('company');
    if (this.#companies.has(companyId)) {
      throw new EmulatorError('conflict', `company ${companyId} already exists`);
    }
    if (this.#companies.size >= this.limit) {
      throw new EmulatorError(
        'limit_reached',
        `the limit of ${this.limit} companies is reached; raise maxCompanies, or reset the emulator`,
      );
    }
    const company: Company = {
      companyId,
      credentials: {
        sandbox: this.#credentials('sandbox', given.clientId, given.clientSecret),
        production: this.#credentials(
          'production',
          given.productionClientId,
          given.productionClientSecret,
        ),
      },
      webhook: {
        url: given.webhookUrl ?? null,
        secret: given.webhookSecret ?? this.random.secret('whsec_', 'webhook'),
        active: given.webhookActive ?? true,
      },
      previousWebhookSecret: undefined,
      tokenGeneration: { sandbox: 0, production: 0 },
    };
    this.#companies.set(companyId, company);
    return company;
  }

  all(): Company[] {
    return [...this.#companies.values()];
  }

  find(companyId: string): Company | undefined {
    return this.#companies.get(companyId);
  }

  /**
   * Returns a company. Without an id, returns the company that the emulator started with. @throws EmulatorError
   * `not_found`
   */
  get(companyId?: string | null): Company {
    const company = companyId ? this.#companies.get(companyId) : this.all()[0];
    if (!company) throw new EmulatorError('not_found', `there is no company ${companyId}`);
    return company;
  }

  findByClientId(clientId: string, environment: Environment): Company | undefined {
    return this.all().find((company) => company.credentials[environment].clientId === clientId);
  }

  setWebhook(input: unknown): Company {
    const { companyId, url, secret, active } = validateInput(WebhookInput, input);
    this.#requireAllowedUrl('url', url);
    const company = this.get(companyId);
    const before = company.webhook;
    if (secret && secret !== before.secret) company.previousWebhookSecret = before.secret;
    company.webhook = {
      url: url === undefined ? before.url : url,
      secret: secret ?? before.secret,
      active: active ?? before.active,
    };
    return company;
  }

  rotateWebhookSecret(input: unknown): Company {
    const { companyId, secret } = validateInput(WebhookSecretInput, input);
    return this.setWebhook({
      companyId,
      secret: secret ?? this.random.secret('whsec_', 'webhook'),
    });
  }

  rotateClientSecret(input: unknown): Company {
    const { companyId, environment = 'sandbox', secret } = validateInput(ClientSecretInput, input);
    const company = this.get(companyId);
    company.credentials[environment] = {
      clientId: company.credentials[environment].clientId,
      clientSecret: secret ?? this.random.secret(`sk_${environment}_`, 'client'),
    };
    return company;
  }

  /** Revokes all tokens that a company has in one environment or in both. */
  revokeTokens(input: unknown): void {
    const { companyId, environment } = validateInput(RevocationInput, input);
    const company = this.get(companyId);
    for (const each of environment ? [environment] : ENVIRONMENTS) company.tokenGeneration[each]++;
  }

  clear(): void {
    this.#companies.clear();
  }

  /** @throws EmulatorInputError if the webhook policy does not allow the URL */
  #requireAllowedUrl(field: string, url: string | null | undefined): void {
    const problem = url ? webhookPolicyProblem(url, this.policy) : undefined;
    if (problem !== undefined) throw new EmulatorInputError([`${field} ${problem}`]);
  }

  #credentials(environment: Environment, id?: string, secret?: string): ClientCredentials {
    const clientId = id ?? `${environment}-${this.random.uuid('client')}`;
    if (this.findByClientId(clientId, environment)) {
      throw new EmulatorError('conflict', `the ${environment} client id ${clientId} is in use`);
    }
    return {
      clientId,
      clientSecret: secret ?? this.random.secret(`sk_${environment}_`, 'client'),
    };
  }
}
