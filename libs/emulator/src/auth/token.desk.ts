import { createHash, timingSafeEqual } from 'node:crypto';
import type { EmulatorClock } from '../clock/emulator.clock.js';
import type { CompanyDirectory } from '../companies/company.directory.js';
import type { Company, Environment } from '../companies/company.record.js';
import type { FaultDirectory } from '../faults/fault.directory.js';
import { parseBasicCredentials } from './basic.credentials.js';
import type { IssuedToken, TokenIssuer } from './token.issuer.js';

/** The success answer of the token endpoint (section 2 of the service's page). */
export interface TokenResponse {
  readonly access_token: string;
  /** Seconds, as a string that holds an integer: `"3599"`. A fault can make it anything. */
  readonly expires_in?: unknown;
  readonly token_type: 'Bearer';
}

/** What the token endpoint decides, without any HTTP. */
export class TokenDesk {
  /** What was issued last, for the `sameToken` fault; gone with its company. */
  readonly #last = new WeakMap<Company, Partial<Record<Environment, IssuedToken>>>();

  constructor(
    private readonly companies: CompanyDirectory,
    private readonly issuer: TokenIssuer,
    private readonly faults: FaultDirectory,
    private readonly clock: EmulatorClock,
    private readonly lifetime: number,
  ) {}

  /** Whose client id the header names, whether or not the secret is right. */
  identify(authorization: string | undefined, environment: Environment): Company | undefined {
    const credentials = parseBasicCredentials(authorization);
    return credentials && this.companies.findByClientId(credentials.clientId, environment);
  }

  /** The token, or undefined for the service's 401 (section 7 of its page). */
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
    return this.#answer(company, environment);
  }

  async #answer(company: Company, environment: Environment): Promise<TokenResponse> {
    const faults = this.faults.onIssue(company.companyId);
    const lifetime = faults.lifetime ?? this.lifetime;
    const kept = faults.sameToken ? this.#kept(company, environment) : undefined;
    const issued = kept ?? (await this.issuer.issue(company, environment, lifetime));
    this.#last.set(company, { ...this.#last.get(company), [environment]: issued });
    const remaining = kept ? Math.ceil((kept.expiresAt - this.clock.now()) / 1000) : lifetime;
    return {
      access_token: issued.token,
      ...('expiresIn' in faults ? reported(faults.expiresIn) : { expires_in: String(remaining) }),
      token_type: 'Bearer',
    };
  }

  /** The token issued last, while it still works. */
  #kept(company: Company, environment: Environment): IssuedToken | undefined {
    const last = this.#last.get(company)?.[environment];
    if (!last || last.expiresAt <= this.clock.now()) return undefined;
    return last.generation === this.issuer.generation(company, environment) ? last : undefined;
  }
}

function reported(value: unknown): { expires_in?: unknown } {
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
