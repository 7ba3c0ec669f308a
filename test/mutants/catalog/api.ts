import type { Mutant } from '../mutant.ts';

/** API calls: HT-21 to HT-32. */
export const API_MUTANTS: readonly Mutant[] = [
  {
    promise: 'HT-21',
    fault: 'accepts paths that start with two slashes',
    file: 'libs/payments/src/api/call-request.ts',
    replace: "!path.startsWith('/') || path.startsWith('//')",
    by: "!path.startsWith('/')",
    specs: ['test/e2e/api-calls/request-path.spec.ts'],
  },
  {
    promise: 'HT-22',
    fault: 'follows a redirect to another host',
    file: 'libs/payments/src/api/http-api-client.ts',
    replace: "throw redirectError(facts, response.headers['location'], this.#url);",
    by: "const to = response.headers['location']; if (to?.startsWith('http')) return void (this.#url = to);",
    specs: ['test/e2e/api-calls/request-path.spec.ts'],
  },
  {
    promise: 'HT-23',
    fault: 'does not retry a GET after 408',
    file: 'libs/payments/src/api/api-options.ts',
    replace: "Object.freeze([408, 429, '5xx'] as const)",
    by: "Object.freeze([429, '5xx'] as const)",
    specs: ['test/e2e/api-calls/retry.spec.ts'],
  },
  {
    promise: 'HT-24',
    fault: 'repeats a POST once after its connection was closed',
    file: 'libs/payments/src/api/http-api-client.ts',
    replace: 'if (!transient || !(this.request.safe || failure.unsent)) throw error;',
    by:
      'const sent = !(this.request.safe || failure.unsent);\n' +
      '    if (!transient || (sent && (timedOut || this.attempts > 1))) throw error;\n' +
      '    if (sent) return;',
    specs: ['test/e2e/api-calls/unknown-outcome.spec.ts'],
  },
  {
    promise: 'HT-25',
    fault: 'does not count the status 500 as a server error',
    file: 'libs/payments/src/api/api-error.ts',
    replace: "status >= 500 && status <= 599 ? 'server_error'",
    by: "status > 500 && status <= 599 ? 'server_error'",
    specs: ['test/e2e/api-calls/response.spec.ts'],
  },
  {
    promise: 'HT-26',
    fault: 'resolves to an empty string for an empty body',
    file: 'libs/payments/src/api/http-exchange.ts',
    replace: 'if (bytes.length === 0) return undefined;',
    by: '',
    specs: ['test/e2e/api-calls/response.spec.ts'],
  },
  {
    promise: 'HT-27',
    fault: 'returns a response over the limit, cut at the limit',
    file: 'libs/payments/src/api/transport.ts',
    replace: "if (success && !whole) return failure('response_too_large'",
    by: "if (!success && !whole) return failure('response_too_large'",
    specs: ['test/e2e/api-calls/response.spec.ts'],
  },
  {
    promise: 'HT-28',
    fault: 'keeps connections of token requests open, and not those of calls',
    file: 'libs/payments/src/api/transport.ts',
    replace: "purpose === 'calls' ? keepAlive : { pipelining: 0 }",
    by: "purpose === 'token' ? keepAlive : { pipelining: 0 }",
    specs: ['test/e2e/api-calls/connection.spec.ts'],
  },
  {
    promise: 'HT-29',
    fault: 'ignores a signal that is already aborted',
    file: 'libs/payments/src/runtime/deadline.ts',
    replace: "if (parent?.aborted) this.end('aborted');",
    by: 'if (parent?.aborted) this.release();',
    specs: ['test/e2e/api-calls/connection.spec.ts'],
  },
  {
    promise: 'HT-30',
    fault: 'passes the path with its ids to observers',
    file: 'libs/payments/src/api/http-api-client.ts',
    replace: 'const { method, pathTemplate: path } = request;',
    by: 'const { method, pathAndQuery: path } = request;',
    specs: ['test/e2e/telemetry/observers-calls.spec.ts'],
  },
  {
    promise: 'HT-31',
    fault: 'does not select the adapter http if agents are given',
    file: 'libs/payments/src/api/api-options.ts',
    replace: 'adapter === needed) return needed;',
    by: "adapter === needed) return adapter ?? 'undici';",
    specs: ['libs/payments/src/api/api-options.spec.ts'],
  },
  {
    promise: 'HT-32',
    fault: 'looks for /v1 with a slash after it, which was already removed',
    file: 'libs/payments/src/companies/company.ts',
    replace: '/\\/v1$/i.test(baseUrl)',
    by: '/\\/v1\\/$/i.test(baseUrl)',
    specs: ['test/e2e/api-calls/base-url.spec.ts'],
  },
];
