import { jwtVerify, SignJWT } from 'jose';
import type { EmulatorClock } from '../runtime/emulator-clock.js';
import type { CompanyStore } from '../companies/company-store.js';
import type { Company, Environment } from '../companies/company.js';
import type { RandomSource } from '../runtime/random-source.js';

const ALGORITHM = 'HS256';

export interface IssuedToken {
  readonly token: string;
  /** When the token expires, in milliseconds since the Unix epoch; a multiple of 1,000. */
  readonly expiresAt: number;
  /** The generation to which the token belongs. A revocation of tokens starts the next generation. */
  readonly generation: string;
}

/**
 * Issues and verifies access tokens. A token is a JWT for one company and one environment. The emulator does not store
 * tokens. Each token contains its generation. The emulator rejects a token whose generation is not the company's
 * current generation.
 */
export class TokenIssuer {
  readonly #key: Uint8Array;
  #resets = 0;

  constructor(
    private readonly companies: CompanyStore,
    private readonly clock: EmulatorClock,
    private readonly random: RandomSource,
  ) {
    this.#key = random.bytes('jwt-key');
  }

  /** Issues a new token. `lifetime` is in seconds. */
  async issue(company: Company, environment: Environment, lifetime: number): Promise<IssuedToken> {
    const issuedAt = Math.floor(this.clock.now() / 1000);
    const generation = this.generation(company, environment);
    const token = await new SignJWT({ company: company.companyId, environment, generation })
      .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
      .setSubject(company.credentials[environment].clientId)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + lifetime)
      // Tokens issued within one second differ, so that a client can distinguish a new token from a rejected one.
      .setJti(this.random.id('token'))
      .sign(this.#key);
    return { token, expiresAt: (issuedAt + lifetime) * 1000, generation };
  }

  /**
   * Returns the token's company. Returns undefined if the token is forged, expired or revoked, or if it was issued for
   * the other environment.
   */
  async verify(token: string, environment: Environment): Promise<Company | undefined> {
    const payload = await jwtVerify(token, this.#key, {
      algorithms: [ALGORITHM],
      requiredClaims: ['exp'],
      currentDate: new Date(this.clock.now()),
    }).then(
      (verified) => verified.payload,
      () => undefined,
    );
    if (payload?.['environment'] !== environment) return undefined;
    const company = this.companies.find(String(payload['company']));
    if (!company || payload['generation'] !== this.generation(company, environment)) {
      return undefined;
    }
    return company;
  }

  generation(company: Company, environment: Environment): string {
    return `${this.#resets}.${company.tokenGeneration[environment]}`;
  }

  /** Revokes all tokens of all companies. */
  reset(): void {
    this.#resets++;
  }
}
