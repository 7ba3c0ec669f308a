import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { isBlank, optionsInvalid, surroundingFault } from '../errors/option-checks.js';

/** Syntax of a company id. The limit is 100 characters, because Fastify by default rejects longer path parameters. */
const ID = /^[A-Za-z0-9._~-]{1,100}$/;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/**
 * The credentials of one company at the payments service. Each company has its own credentials, and those for the
 * sandbox and for production are different.
 */
export interface Company {
  /**
   * The company's name in the application: 1 to 100 characters of `A-Z a-z 0-9 . _ ~ -`. The id is the last segment of
   * the company's webhook path and part of every stored row, so it must not change.
   */
  id: string;
  /** User name of the token request. Not empty, without surrounding white space or quotes. */
  clientId: string;
  /** Password of the token request. Not empty, without surrounding white space or quotes. */
  clientSecret: string;
  /**
   * Secret that signs the webhook requests for this company, or several secrets, current first. A signature with any of
   * these secrets is accepted, so that no event is lost while you change the secret. 1 to 10 secrets, none of them
   * empty or surrounded by white space or quotes.
   *
   * Two companies must not have the same secret, because an event for one company would be accepted for the other. If
   * two companies in a list have the same secret, the application does not boot; if a directory returns two such
   * companies, a warning is logged.
   */
  webhookSecret: string | readonly string[];
  /** Address of the service for this company. Default: the module's `baseUrl`. */
  baseUrl?: string;
}

/**
 * Finds a company in the application's own database.
 *
 * Results are cached: a failure for 1 s, a missing company or a company with a wrong id for 5 s, and a found company
 * for 60 s. For ids that never had a webhook request with a valid signature, the module makes at most
 * `webhook.maxLookupsPerSecond` lookups per second. Therefore, strangers cannot cause a database query with every
 * request.
 *
 * @example
 * ```ts
 * const directory: CompanyDirectory = {
 *   find: async (id) => (await merchants.findOneBy({ id }))?.payments,
 * };
 * ```
 */
export interface CompanyDirectory {
  /**
   * Returns the company with this id, or `undefined` or `null` if there is none.
   *
   * The returned company must have exactly this `id`. For webhook requests to the path without a company, the id is
   * `default`. If the `id` is missing or different, for example because a database ignores case, the response to the
   * webhook request is 401 (`company_unknown`), nothing is stored, and a warning is logged.
   *
   * If the method throws or takes longer than `deadlineMs`, the response is 503 (`directory_unavailable`), so that the
   * service sends the event again. The name and message of the error are logged, at most once per minute.
   */
  find(id: string): Promise<Company | null | undefined> | Company | null | undefined;
}

/** Id of the company if the application configures one company without an id. */
export const DEFAULT_COMPANY = 'default';

/**
 * A webhook secret, prepared to sign any number of bodies. `JSON.stringify` and `util.inspect` do not show the secret.
 *
 * @example
 * ```ts
 * const key = new SigningKey('whsec_1');
 * key.sign(body).toString('hex'); // 128 hex digits
 * ```
 */
export class SigningKey {
  readonly #key: KeyObject;

  /** @param secret the webhook secret, as the payments service gave it. The UTF-8 encoding of the secret is the key. */
  constructor(secret: string) {
    this.#key = createSecretKey(secret, 'utf8');
  }

  /** Returns the HMAC-SHA512 of the body: 64 bytes. */
  sign(body: Uint8Array): Buffer {
    return createHmac('sha512', this.#key).update(body).digest();
  }
}

/** A company with checked fields. `JSON.stringify` and `util.inspect` do not show its secrets. */
export class ResolvedCompany {
  readonly #clientId: string;
  readonly #clientSecret: string;
  readonly #signingKeys: readonly SigningKey[];

  constructor(
    readonly id: string,
    /** Address of the service, without a trailing slash. */
    readonly baseUrl: string,
    secrets: { clientId: string; clientSecret: string; webhookSecrets: readonly string[] },
  ) {
    this.#clientId = secrets.clientId;
    this.#clientSecret = secrets.clientSecret;
    this.#signingKeys = Object.freeze(
      secrets.webhookSecrets.map((secret) => new SigningKey(secret)),
    );
    Object.freeze(this);
  }

  get clientId(): string {
    return this.#clientId;
  }

  get clientSecret(): string {
    return this.#clientSecret;
  }

  /** The accepted webhook secrets, current first. */
  get signingKeys(): readonly SigningKey[] {
    return this.#signingKeys;
  }
}

export function isCompanyId(id: unknown): id is string {
  return typeof id === 'string' && ID.test(id) && id !== '.' && id !== '..';
}

export interface CompanyDefaults {
  readonly baseUrl?: string | undefined;
  readonly allowInsecureHttp?: boolean | undefined;
}

/** @throws PaymentsError `options_invalid`. The message names the field and the fix, and contains no secret. */
export function resolveCompany(company: Company, defaults: CompanyDefaults = {}): ResolvedCompany {
  const { id } = company;
  if (!isCompanyId(id)) {
    throw optionsInvalid(
      `a company's "id" must be 1 to 100 characters of A-Z a-z 0-9 . _ ~ -, because it is part of the webhook path.`,
    );
  }
  const secrets = company.webhookSecret;
  const webhookSecrets: readonly unknown[] = Array.isArray(secrets) ? secrets : [secrets];
  if (webhookSecrets.length < 1 || webhookSecrets.length > 10) {
    throw optionsInvalid(
      `"webhookSecret" of company ${id} must be one secret or a list of 1 to 10, current first; the list has ${webhookSecrets.length}.`,
    );
  }
  return new ResolvedCompany(
    id,
    resolveBaseUrl(company.baseUrl ?? defaults.baseUrl, id, defaults.allowInsecureHttp),
    {
      clientId: requireSecret(company.clientId, 'clientId', id),
      clientSecret: requireSecret(company.clientSecret, 'clientSecret', id),
      webhookSecrets: webhookSecrets.map((secret) => requireSecret(secret, 'webhookSecret', id)),
    },
  );
}

function requireSecret(value: unknown, name: string, id: string): string {
  if (typeof value !== 'string' || isBlank(value)) {
    throw optionsInvalid(
      `"${name}" of company ${id} is missing or empty. Set it to the value that the payments service gave you. ` +
        'If it comes from an environment variable, check that the variable is set.',
    );
  }
  const fault = surroundingFault(value);
  if (fault !== undefined) throw optionsInvalid(`"${name}" of company ${id} ${fault}`);
  return value;
}

function resolveBaseUrl(value: unknown, id: string, allowInsecureHttp = false): string {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null;
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw optionsInvalid(
      `"baseUrl" of company ${id} must be an absolute address such as https://payments.example.com, without the /v1 of the paths.`,
    );
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw optionsInvalid(
      `"baseUrl" of company ${id} must not contain a user name, password, query or fragment. Credentials go to "clientId" and "clientSecret".`,
    );
  }
  if (url.protocol === 'http:' && !allowInsecureHttp && !LOOPBACK.test(url.hostname)) {
    throw optionsInvalid(
      `"baseUrl" of company ${id} must begin with https:, because http: would send credentials without encryption. If the network itself is trusted, you can set "allowInsecureHttp: true" (PAYMENTS_ALLOW_INSECURE_HTTP=true in the environment).`,
    );
  }
  const baseUrl = url.href.replace(/\/+$/, '');
  if (/\/v1$/i.test(baseUrl)) {
    throw optionsInvalid(
      `"baseUrl" (PAYMENTS_BASE_URL) of company ${id} ends in /v1. Remove the /v1: every path contains it already.`,
    );
  }
  return baseUrl;
}

export interface Companies {
  /**
   * Returns the company for a call that the application itself makes, or `undefined` if no company has this id. The rate
   * of these lookups is not limited.
   *
   * @throws PaymentsError `directory_unavailable` if the application's directory fails; `company_unknown` if it returns
   *   a company with another id.
   */
  find(id: string): Promise<ResolvedCompany | undefined>;

  /**
   * Returns the company for a webhook request whose signature is not verified yet, or `undefined` if no company has this
   * id.
   *
   * @param arrivedAt when the webhook request arrived, on the monotonic clock; the deadline counts from this time
   * @throws PaymentsError `directory_unavailable` if the application's directory fails or does not respond before the
   *   deadline, or if unverified webhook requests need too many lookups.
   */
  findForWebhook(id: string, arrivedAt: number): Promise<ResolvedCompany | undefined>;

  /**
   * Returns the company if it is known without a lookup. If the result is `undefined`, {@link find} may still find the
   * company.
   */
  known(id: string): ResolvedCompany | undefined;

  /** Must be called when a webhook request for this company had a valid signature. */
  verified(id: string): void;

  /** The ids of the companies in the options; empty if a directory finds the companies. */
  readonly ids: readonly string[];
}

export const COMPANIES = Symbol('PAYMENTS_COMPANIES');

/**
 * The companies in the options. If there is only one company, {@link find} returns this company both for its own id and
 * for `default`.
 */
export class ListedCompanies implements Companies {
  readonly #byId: ReadonlyMap<string, ResolvedCompany>;
  readonly ids: readonly string[];

  constructor(companies: readonly ResolvedCompany[]) {
    this.ids = companies.map(({ id }) => id);
    const byId = new Map(companies.map((company) => [company.id, company]));
    if (companies.length === 1) byId.set(DEFAULT_COMPANY, companies[0]!);
    this.#byId = byId;
  }

  async find(id: string): Promise<ResolvedCompany | undefined> {
    return this.known(id);
  }

  async findForWebhook(id: string): Promise<ResolvedCompany | undefined> {
    return this.known(id);
  }

  known(id: string): ResolvedCompany | undefined {
    return this.#byId.get(id);
  }

  verified(): void {}
}

/**
 * Finds companies that have the same webhook secret, because an event of one company would be accepted for the other.
 * Stores no secret, only the signature of a random text with each secret. Each instance creates its own random text.
 */
export class SharedSecrets {
  readonly #text = randomBytes(32);
  /**
   * The key is the signature of the random text with a secret. The value is the id of the first company with this
   * secret.
   */
  readonly #owners = new Map<string, string>();

  /** Adds a company. Returns the id of another company that has one of the same secrets, or `undefined`. */
  add(company: ResolvedCompany): string | undefined {
    let shared: string | undefined;
    for (const signature of this.#signatures(company)) {
      const owner = this.#owners.get(signature) ?? company.id;
      this.#owners.set(signature, owner);
      if (owner !== company.id) shared = owner;
    }
    return shared;
  }

  remove(company: ResolvedCompany): void {
    for (const signature of this.#signatures(company)) {
      if (this.#owners.get(signature) === company.id) this.#owners.delete(signature);
    }
  }

  #signatures({ signingKeys }: ResolvedCompany): string[] {
    return signingKeys.map((key) => key.sign(this.#text).toString('base64', 0, 16));
  }
}
