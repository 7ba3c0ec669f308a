/** What RFC 3986 allows in a path, percent-encoded where need be: no space, backslash, query or fragment. */
const PATH = /^(?:\/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})*)+$/;

/**
 * One segment of a path, from an id: encoded, so that whatever the id holds, it stays one segment.
 *
 * @param name what the id is, for the error
 * @throws TypeError where it is no string, empty, or steps through the path with `.` or `..`. Encoding alone is
 *   no help there: some servers decode before they resolve dots, and an id a stranger chose could then have
 *   another resource answer for a transaction
 */
export function pathSegment(name: string, id: unknown): string {
  if (typeof id !== 'string') throw new TypeError(`The ${name} must be a string`);
  if (id === '') throw new TypeError(`The ${name} must not be empty`);
  if (hasDotSegment(id)) throw new TypeError(`The ${name} must not hold the steps '.' or '..'`);
  if (!id.isWellFormed()) throw new TypeError(`The ${name} holds half a surrogate pair`);
  return encodeURIComponent(id);
}

/**
 * Checks that a path stays where it should: under the base URL. The path itself is not in the error, since it
 * may hold anything.
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
    throw new TypeError("The path must not hold a query: give it as the option 'query'");
  }
  if (!PATH.test(path)) {
    throw new TypeError(
      'The path must not hold backslashes, fragments, spaces or control characters: ' +
        'put ids through encodeURIComponent()',
    );
  }
  if (hasDotSegment(path)) {
    throw new TypeError("The path must not hold '.' or '..' segments, encoded or not");
  }
}

/** The address of a call: `baseUrl` and path, put together without any of URL's own normalising. */
export function callUrl(baseUrl: string, pathAndQuery: string): string {
  const url = baseUrl.replace(/\/+$/, '') + pathAndQuery;
  // The last line of defence: whatever a path holds, the token goes to the company's own host.
  if (new URL(url).origin !== new URL(baseUrl).origin) {
    throw new TypeError("The path must stay on the host of the company's base URL");
  }
  return url;
}

/**
 * Encodes a query string, with its `?`; empty where there is nothing in it. `undefined` is left out, an array
 * repeats its name.
 *
 * @throws TypeError for a value that is no string, finite number or boolean
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
  // An encoded slash or backslash is decoded by some servers before they resolve dots, so it parts segments here.
  const plain = path.replace(/%2e/gi, '.').replace(/%2f|%5c|\\/gi, '/');
  return plain.split('/').some((segment) => segment === '.' || segment === '..');
}
