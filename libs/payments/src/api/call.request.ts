import { integerOption } from '../payments.validation.js';
import type { ResolvedApiOptions } from './api.options.js';
import { checkPath, queryString } from './api.path.js';
import type { ApiMethod, BodyOptions } from './payments.api.js';

/** A call as it was asked for. */
export interface CallSpec {
  method: ApiMethod;
  path: string;
  options: BodyOptions;
  /** `object`: an answer that is no JSON object is an error. */
  expect: 'object' | 'anything';
}

/** A call that was checked, and can be sent as often as need be. */
export interface CallRequest {
  readonly method: ApiMethod;
  readonly pathAndQuery: string;
  /** What errors and logs show in place of the path. */
  readonly label: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
  readonly signal: AbortSignal | undefined;
  readonly deadlineMs: number;
  /** Whether it may be sent twice: it changes nothing. */
  readonly safe: boolean;
  readonly expect: 'object' | 'anything';
}

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const OWN_HEADERS = new Set(
  `authorization x-auth-token proxy-authorization host content-length content-type
  content-encoding transfer-encoding connection upgrade te keep-alive trailer expect
  accept-encoding user-agent`.split(/\s+/),
);

/**
 * Checks a call and puts it in the form it is sent in, before a token is asked for.
 *
 * @throws TypeError for a mistake of the caller's
 */
export function prepareCall(spec: CallSpec, options: ResolvedApiOptions): CallRequest {
  const { method, path, options: given } = spec;
  if (!METHODS.includes(method)) {
    throw new TypeError(`The method must be one of ${METHODS.join(', ')}`);
  }
  checkPath(path);
  const { signal, pathTemplate = path } = given;
  if (typeof pathTemplate !== 'string') throw new TypeError('The pathTemplate must be a string');
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw new TypeError('The signal must be an AbortSignal');
  }
  const safe = method === 'GET' || method === 'HEAD';
  const body = given.body === undefined ? undefined : jsonBody(given.body);
  if (safe && body) throw new TypeError(`A ${method} has no body: use the option 'query'`);
  const headers: Record<string, string> = { accept: 'application/json', ...own(given.headers) };
  headers['user-agent'] = options.userAgent;
  if (body) headers['content-type'] = 'application/json';
  if (given.idempotencyKey !== undefined) {
    headers[idempotencyHeader(options)] = headerValue('idempotencyKey', given.idempotencyKey);
  }
  return {
    method,
    pathAndQuery: path + queryString(given.query),
    label: pathTemplate,
    headers,
    body,
    signal,
    deadlineMs: deadline(given.deadlineMs, options),
    safe,
    expect: spec.expect,
  };
}

function jsonBody(body: unknown): Buffer {
  // Throws a TypeError of its own for a BigInt or a circle.
  const text: unknown = JSON.stringify(body);
  if (typeof text !== 'string') throw new TypeError('The body must be something JSON can hold');
  return Buffer.from(text);
}

function own(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  const checked: Record<string, string> = {};
  for (const [given, value] of Object.entries(headers)) {
    const name = given.toLowerCase();
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw new TypeError('A header has no valid name');
    if (OWN_HEADERS.has(name)) {
      throw new TypeError(`The header '${name}' is set by the module and can't be given`);
    }
    checked[name] = headerValue(`header '${name}'`, value);
  }
  return checked;
}

function headerValue(what: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
    return value;
  }
  throw new TypeError(`The ${what} must be a string of characters a header can hold`);
}

function idempotencyHeader({ idempotencyHeader: name }: ResolvedApiOptions): string {
  if (name !== undefined) return name;
  throw new TypeError(
    "An idempotencyKey needs the option 'idempotencyHeader': the payments service documents no header for it",
  );
}

function deadline(value: unknown, options: ResolvedApiOptions): number {
  try {
    const bounds = { default: options.deadlineMs, min: 1, max: 600_000, unit: 'milliseconds' };
    return integerOption('deadlineMs', value, bounds);
  } catch {
    throw new TypeError('deadlineMs must be a whole number of milliseconds from 1 to 600000');
  }
}
