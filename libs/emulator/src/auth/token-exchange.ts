import { createHash, timingSafeEqual } from 'node:crypto';
import type { EmulatorClock } from '../runtime/emulator-clock.js';
import type { CompanyStore } from '../companies/company-store.js';
import type { Company, Environment } from '../companies/company.js';
import type { FaultStore } from '../faults/fault-store.js';
import { parseBasicCredentials } from './basic-credentials.js';
import type { IssuedToken, TokenIssuer } from './token-issuer.js';

/** The success response of the token endpoint. */
export interface TokenResponse {
  readonly access_token: string;
  /**
   * The lifetime of the token in seconds, as a string that contains an integer, for example `"3599"`. The fault
   * `expiresIn` can replace this value with any JSON value, or omit the field.
   */
  readonly expires_in?: unknown;
  readonly token_type: 'Bearer';
}

/** Exchanges client credentials for access tokens. This class is the token endpoint without the HTTP layer. */
export class TokenExchange {
  /** The last token that each company got in each environment. The fault `sameToken` returns this token again. */
  readonly #last = new WeakMap<Company, Partial<Record<Environment, IssuedToken>>>();

  constructor(
    private readonly companies: CompanyStore,
    private readonly issuer: TokenIssuer,
    private readonly faults: FaultStore,
    private readonly clock: EmulatorClock,
    private readonly lifetime: number,
  ) {}

  /**
   * Returns the company whose client id an `Authorization` header contains, or undefined. Does not check the client
   * secret.
   */
  identify(authorization: string | undefined, environment: Environment): Company | undefined {
    const credentials = parseBasicCredentials(authorization);
    return credentials && this.companies.findByClientId(credentials.clientId, environment);
  }

  /** Returns the token response, or undefined if the service would respond with 401. */
  async exchange(
    authorization: string | undefined,
    body: unknown,
    environment: Environment,
  ): Promise<TokenResponse | undefined> {
    const company = this.identify(authorization, environment);
    const credentials = parseBasicCredentials(authorization);
    if (!company || !credentials) return undefined;
    const expected = company.credentials[environment].clientSecret;
    if (!equalSecrets(credentials.clientSecret, expected)) return undefined;
    if (!isClientCredentialsGrant(body)) return undefined;
    return this.#issue(company, environment);
  }

  async #issue(company: Company, environment: Environment): Promise<TokenResponse> {
    const faults = this.faults.forToken(company.companyId);
    const lifetime = faults.lifetime ?? this.lifetime;
    const reused = faults.sameToken ? this.#reusable(company, environment) : undefined;
    const issued = reused ?? (await this.issuer.issue(company, environment, lifetime));
    this.#last.set(company, { ...this.#last.get(company), [environment]: issued });
    const remaining = reused ? Math.ceil((reused.expiresAt - this.clock.now()) / 1000) : lifetime;
    return {
      access_token: issued.token,
      ...('expiresIn' in faults
        ? expiresInField(faults.expiresIn)
        : { expires_in: String(remaining) }),
      token_type: 'Bearer',
    };
  }

  #reusable(company: Company, environment: Environment): IssuedToken | undefined {
    const last = this.#last.get(company)?.[environment];
    if (!last || last.expiresAt <= this.clock.now()) return undefined;
    return last.generation === this.issuer.generation(company, environment) ? last : undefined;
  }
}

function expiresInField(value: unknown): { expires_in?: unknown } {
  return value === undefined ? {} : { expires_in: value };
}

function isClientCredentialsGrant(body: unknown): boolean {
  return (
    typeof body === 'object' &&
    body !== null &&
    (body as { grant_type: unknown }).grant_type === 'client_credentials'
  );
}

function equalSecrets(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
