import { integerOption } from '../../errors/options-invalid.js';
import type { ResolvedApiOptions } from '../api-options.js';
import { checkPath, queryString } from '../http/request-url.js';
import type { ApiMethod, BodyOptions } from '../payments-api.js';

/** A call as the application described it. */
export interface CallSpec {
  method: ApiMethod;
  path: string;
  options: BodyOptions;
  /** `object`: an answer that is not a JSON object is an error. */
  expect: 'object' | 'anything';
}

/** A call that was checked and can be sent any number of times. */
export interface CallRequest {
  readonly method: ApiMethod;
  readonly pathAndQuery: string;
  /** What errors and logs show instead of the path. */
  readonly label: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
  readonly signal: AbortSignal | undefined;
  readonly deadlineMs: number;
  /** Whether it can be sent twice, because it changes nothing. */
  readonly safe: boolean;
  readonly expect: 'object' | 'anything';
}

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const RESERVED_HEADERS = new Set(
  `authorization x-auth-token proxy-authorization host content-length content-type
  content-encoding transfer-encoding connection upgrade te keep-alive trailer expect
  accept-encoding user-agent`.split(/\s+/),
);

/**
 * Checks a call and encodes its headers and body, before a token is fetched.
 *
 * @throws TypeError for an invalid argument
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
  const headers: Record<string, string> = {
    accept: 'application/json',
    ...checkedHeaders(given.headers),
  };
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
    deadlineMs: checkedDeadline(given.deadlineMs, options),
    safe,
    expect: spec.expect,
  };
}

function jsonBody(body: unknown): Buffer {
  // Throws a TypeError itself for a BigInt or a circular reference.
  const text: unknown = JSON.stringify(body);
  if (typeof text !== 'string')
    throw new TypeError('The body must be a value that JSON can represent');
  return Buffer.from(text);
}

function checkedHeaders(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  const checked: Record<string, string> = {};
  for (const [given, value] of Object.entries(headers)) {
    const name = given.toLowerCase();
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw new TypeError('A header has an invalid name');
    if (RESERVED_HEADERS.has(name)) {
      throw new TypeError(`The header '${name}' is set by the module and cannot be given`);
    }
    checked[name] = headerValue(`header '${name}'`, value);
  }
  return checked;
}

function headerValue(what: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
    return value;
  }
  throw new TypeError(`The ${what} must be a string of characters that a header can contain`);
}

function idempotencyHeader({ idempotencyHeader: name }: ResolvedApiOptions): string {
  if (name !== undefined) return name;
  throw new TypeError(
    "An idempotencyKey needs the option 'idempotencyHeader': the payments service documents no header for it",
  );
}

function checkedDeadline(value: unknown, options: ResolvedApiOptions): number {
  try {
    const bounds = { default: options.deadlineMs, min: 1, max: 600_000, unit: 'milliseconds' };
    return integerOption('deadlineMs', value, bounds);
  } catch {
    throw new TypeError('deadlineMs must be a whole number of milliseconds from 1 to 600000');
  }
}
