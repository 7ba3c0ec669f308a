/** A path as RFC 3986 allows it, percent-encoded: no space, backslash, query or fragment. */
const PATH = /^(?:\/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})*)+$/;

/**
 * Encodes an id as one segment of a path.
 *
 * @param name what the id is, for the error
 * @throws TypeError if it is not a string, is empty, or contains the segment `.` or `..`. Encoding does not make those
 *   safe: some servers decode a path before they resolve dots, and would answer with another resource
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
 * Checks that a path stays under the base URL. The error does not contain the path, because it may contain a secret.
 *
 * @throws TypeError
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

/** The URL of a request: base URL and path, without the normalization of the class `URL`. */
export function callUrl(baseUrl: string, pathAndQuery: string): string {
  const url = baseUrl.replace(/\/+$/, '') + pathAndQuery;
  // A second check after checkPath(): the token must be sent to the company's own host only.
  if (new URL(url).origin !== new URL(baseUrl).origin) {
    throw new TypeError("The path must stay on the host of the company's base URL");
  }
  return url;
}

/**
 * Encodes a query string, with its `?`; empty if it has no parameters. `undefined` is left out, an array repeats its
 * name.
 *
 * @throws TypeError for a value that is not a string, finite number or boolean
 */
export function queryString(query: Readonly<Record<string, unknown>> | undefined): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (one === undefined) continue;
      if (!isQueryValue(one)) {
        throw new TypeError(
          `The query parameter '${name}' must be a string, a finite number or a boolean`,
        );
      }
      parameters.append(name, String(one));
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
  // Some servers decode a slash or backslash before they resolve dots, so here it separates segments too.
  const plain = path.replace(/%2e/gi, '.').replace(/%2f|%5c|\\/gi, '/');
  return plain.split('/').some((segment) => segment === '.' || segment === '..');
}
