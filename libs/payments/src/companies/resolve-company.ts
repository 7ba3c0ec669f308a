import { isBlank, optionsInvalid, surroundingFault } from '../errors/options-invalid.js';
import { ResolvedCompany } from './company.js';
import type { Company } from './company.js';

/** At most 100 characters: by default, Fastify accepts no longer path parameter. */
const ID = /^[A-Za-z0-9._~-]{1,100}$/;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Whether a value has the syntax of a company id. */
export function isCompanyId(id: unknown): id is string {
  return typeof id === 'string' && ID.test(id) && id !== '.' && id !== '..';
}

/** Options that apply to companies without their own. */
export interface CompanyDefaults {
  readonly baseUrl?: string | undefined;
  readonly allowInsecureHttp?: boolean | undefined;
}

/**
 * Completes and validates a company.
 *
 * @throws PaymentsError `options_invalid`. The message names the field and the fix, and contains no secret.
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
      `"baseUrl" of company ${id} is http:, which would send credentials without encryption. Use https:, or, if the network itself is trusted, set "allowInsecureHttp: true" (PAYMENTS_ALLOW_INSECURE_HTTP=true in the environment).`,
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
