import { jwtVerify, SignJWT } from 'jose';
import type { EmulatorClock } from '../clock/emulator.clock.js';
import type { CompanyDirectory } from '../companies/company.directory.js';
import type { Company, Environment } from '../companies/company.record.js';
import type { RandomSource } from '../random/random.source.js';

const ALGORITHM = 'HS256';

/** A token and when it stops working. */
export interface IssuedToken {
  readonly token: string;
  /** Milliseconds since the Unix epoch, a whole second. */
  readonly expiresAt: number;
  /** The generation it belongs to: a revocation starts another. */
  readonly generation: string;
}

/**
 * Issues and checks company tokens: JWTs bound to a company and an environment. Nothing is kept of
 * a token but the generation it belongs to, so any number of them takes no memory.
 */
export class TokenIssuer {
  readonly #key: Uint8Array;
  #run = 0;

  constructor(
    private readonly companies: CompanyDirectory,
    private readonly clock: EmulatorClock,
    private readonly random: RandomSource,
  ) {
    this.#key = random.bytes('jwt-key');
  }

  /** A new token. `lifetime` is in seconds. */
  async issue(company: Company, environment: Environment, lifetime: number): Promise<IssuedToken> {
    const issuedAt = Math.floor(this.clock.now() / 1000);
    const generation = this.generation(company, environment);
    const token = await new SignJWT({ company: company.companyId, environment, generation })
      .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
      .setSubject(company.credentials[environment].clientId)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + lifetime)
      // Two tokens of one second differ, so that a client can tell a new one from a rejected one.
      .setJti(this.random.id('token'))
      .sign(this.#key);
    return { token, expiresAt: (issuedAt + lifetime) * 1000, generation };
  }

  /** Whose token it is, or undefined where it is forged, expired, revoked or of the other host. */
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

  /** The generation a token must be of to be accepted. */
  generation(company: Company, environment: Environment): string {
    return `${this.#run}.${company.tokenGeneration[environment]}`;
  }

  /** Rejects every token issued so far. */
  reset(): void {
    this.#run++;
  }
}
