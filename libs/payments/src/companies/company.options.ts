import { optionsInvalid } from '../payments.validation.js';
import { ResolvedCompany } from './company.js';
import type { Company } from './company.js';

// No longer than the longest path parameter Fastify takes by default.
const ID = /^[A-Za-z0-9._~-]{1,100}$/;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Whether a text can be a company's id. */
export function isCompanyId(id: unknown): id is string {
  return typeof id === 'string' && ID.test(id) && id !== '.' && id !== '..';
}

/** What holds for every company unless it says otherwise. */
export interface CompanyDefaults {
  readonly baseUrl?: string | undefined;
  readonly allowInsecureHttp?: boolean | undefined;
}

/**
 * Makes a company complete and checks it.
 *
 * @throws PaymentsError `options_invalid`, naming the field and the mend, never a secret.
 */
export function resolveCompany(company: Company, defaults: CompanyDefaults = {}): ResolvedCompany {
  const { id } = company;
  if (!isCompanyId(id)) {
    throw optionsInvalid(
      `a company's "id" must be 1 to 100 characters of A-Z a-z 0-9 . _ ~ -, since it is part of its webhook path.`,
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
      clientId: requireText(company.clientId, 'clientId', id),
      clientSecret: requireText(company.clientSecret, 'clientSecret', id),
      webhookSecrets: webhookSecrets.map((secret) => requireText(secret, 'webhookSecret', id)),
    },
  );
}

function requireText(value: unknown, name: string, id: string): string {
  if (typeof value !== 'string' || value.trim() === '') {
    throw optionsInvalid(
      `"${name}" of company ${id} is missing or empty. Set it to what the service gave you; is the environment variable set?`,
    );
  }
  if (value !== value.trim()) {
    throw optionsInvalid(
      `"${name}" of company ${id} begins or ends with white space, which is never part of it. Remove it, for instance a newline read from a file.`,
    );
  }
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
      `"baseUrl" of company ${id} must hold no user name, password, query or fragment. Credentials go to "clientId" and "clientSecret".`,
    );
  }
  if (url.protocol === 'http:' && !allowInsecureHttp && !LOOPBACK.test(url.hostname)) {
    throw optionsInvalid(
      `"baseUrl" of company ${id} is http:, which would send credentials readable for all on the way. Use https:, or, where the network itself is trusted, set "allowInsecureHttp: true" (PAYMENTS_ALLOW_INSECURE_HTTP=true in the environment).`,
    );
  }
  return url.href.replace(/\/+$/, '');
}
