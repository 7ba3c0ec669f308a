import { isWhole } from '../errors/option-checks.js';
import type { ResolvedApiOptions } from './api-options.js';
import { USER_AGENT } from './http-exchange.js';
import type { ApiMethod, CallSpec } from './payments-api.js';

/** A call with checked and encoded arguments. Every attempt sends the same request. */
export interface CallRequest {
  readonly method: ApiMethod;
  readonly pathAndQuery: string;
  /**
   * The path that errors, logs and observers show: the application's own template, or the path with `{id}` in place of
   * each segment that may be an id.
   */
  readonly pathTemplate: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
  readonly signal: AbortSignal | undefined;
  readonly deadlineMs: number;
  readonly obeyRetryAfter: boolean;
  /** Whether the call changes nothing, so that it can be repeated: a GET or HEAD. */
  readonly safe: boolean;
  readonly expect: 'object' | 'anything';
}

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const RESERVED_HEADERS = new Set(
  `authorization x-auth-token proxy-authorization host content-length content-type
  content-encoding transfer-encoding connection upgrade te keep-alive trailer expect
  accept-encoding user-agent`.split(/\s+/),
);

/** Matches a percent-encoded path of RFC 3986: no space, backslash, query or fragment. */
const PATH = /^(?:\/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})*)+$/;

/** @throws TypeError for an invalid argument, before a token is fetched */
export function prepareCall(spec: CallSpec, options: ResolvedApiOptions): CallRequest {
  const { method, path, options: given } = spec;
  if (!METHODS.includes(method)) {
    throw new TypeError(`The method must be one of ${METHODS.join(', ')}`);
  }
  checkPath(path);
  const { signal, pathTemplate = withoutIds(path) } = given;
  if (typeof pathTemplate !== 'string') throw new TypeError('The pathTemplate must be a string');
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw new TypeError('The signal must be an AbortSignal');
  }
  const safe = method === 'GET' || method === 'HEAD';
  const body = given.body === undefined ? undefined : jsonBody(given.body);
  if (safe && body) throw new TypeError(`A ${method} must not have a body: use the option 'query'`);
  const headers: Record<string, string> = {
    accept: 'application/json',
    ...checkedHeaders(given.headers),
  };
  headers['user-agent'] = USER_AGENT;
  if (body) headers['content-type'] = 'application/json';
  return {
    method,
    pathAndQuery: path + queryString(given.query),
    pathTemplate,
    headers,
    body,
    signal,
    deadlineMs: checkedDeadline(given.deadlineMs ?? options.deadlineMs),
    obeyRetryAfter: given.obeyRetryAfter === true,
    safe,
    expect: spec.expect,
  };
}

/**
 * Replaces each path segment that contains a digit with `{id}`, because the segment may be an id. A version such as
 * `v1` stays.
 */
function withoutIds(path: string): string {
  return path.replace(/[^/]*\d[^/]*/g, (segment) => (/^v\d+$/.test(segment) ? segment : '{id}'));
}

function jsonBody(body: unknown): Buffer {
  // JSON.stringify itself throws a TypeError for a BigInt or a circular reference.
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

function headerValue(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
    return value;
  }
  throw new TypeError(`The ${name} must be a string of characters that a header can contain`);
}

function checkedDeadline(value: unknown): number {
  if (isWhole(value, 1, 600_000)) return value;
  throw new TypeError('deadlineMs must be a whole number of milliseconds from 1 to 600000');
}

/**
 * Encodes an id as one segment of a path.
 *
 * @throws TypeError if the id is not a string, is empty, contains half a surrogate pair, or contains the segment `.` or
 *   `..`. Encoding does not make dots safe, because some servers decode a path before they resolve dots, and would
 *   return another resource
 */
export function pathSegment(name: string, id: unknown): string {
  if (typeof id !== 'string') throw new TypeError(`The ${name} must be a string`);
  if (id === '') throw new TypeError(`The ${name} must not be empty`);
  if (hasDotSegment(id))
    throw new TypeError(`The ${name} must not contain the segments '.' or '..'`);
  if (!id.isWellFormed()) throw new TypeError(`The ${name} contains half a surrogate pair`);
  return encodeURIComponent(id);
}

/**
 * Checks that a path stays under the base URL.
 *
 * @throws TypeError without the path in its message, because the path may contain a secret
 */
export function checkPath(path: unknown): asserts path is string {
  if (typeof path !== 'string' || !path.startsWith('/') || path.startsWith('//')) {
    throw new TypeError(
      "The path must be relative to the company's base URL and start with one '/', like '/v1/transactions'",
    );
  }
  if (path.includes('?')) {
    throw new TypeError("The path must not contain a query: use the option 'query'");
  }
  if (!PATH.test(path)) {
    throw new TypeError(
      'The path must not contain backslashes, fragments, spaces or control characters: ' +
        'encode ids with encodeURIComponent()',
    );
  }
  if (hasDotSegment(path)) {
    throw new TypeError("The path must not contain the segments '.' or '..', encoded or not");
  }
}

/**
 * Returns the encoded query: it starts with `?`, or is empty if there are no parameters.
 *
 * @throws TypeError for a value that is not a string, finite number or boolean
 */
export function queryString(query: Readonly<Record<string, unknown>> | undefined): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const item of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (item === undefined) continue;
      if (!isQueryValue(item)) {
        throw new TypeError(
          `The query parameter '${name}' must be a string, a finite number or a boolean`,
        );
      }
      parameters.append(name, String(item));
    }
  }
  const text = parameters.toString();
  return text && `?${text}`;
}

function isQueryValue(value: unknown): value is string | number | boolean {
  return (
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    (typeof value === 'number' && Number.isFinite(value))
  );
}

function hasDotSegment(path: string): boolean {
  // Some servers decode a slash or backslash before they resolve dots, so both count as separators here.
  const plain = path.replace(/%2e/gi, '.').replace(/%2f|%5c|\\/gi, '/');
  return plain.split('/').some((segment) => segment === '.' || segment === '..');
}
