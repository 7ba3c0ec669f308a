import type { AxiosRequestConfig } from 'axios';

/**
 * What every request of this package asks of axios: every status is an answer, and the body comes as it is. The
 * caps and the parsing are this package's own, on the decompressed bytes, and axios neither throws for a status
 * nor keeps a body in an error. `stream` also has Nest's `HttpService` leave a request that is done alone.
 */
export const WHOLE_ANSWERS: AxiosRequestConfig = Object.freeze({
  responseType: 'stream',
  validateStatus: () => true,
  transformRequest: [],
  transformResponse: [],
});

/**
 * What a request asks of axios's own adapter, which serves agents of the application's.
 *
 * - No redirects: one would carry `x-auth-token` to another host.
 * - No proxy from the environment: `HTTP_PROXY` set for something else would see the tokens. An application
 *   that needs a proxy hands in `agents`.
 */
export const OVER_AGENTS: AxiosRequestConfig = Object.freeze({
  ...WHOLE_ANSWERS,
  adapter: 'http',
  maxRedirects: 0,
  proxy: false,
  timeout: 0,
  decompress: true,
  maxContentLength: Infinity,
  maxBodyLength: Infinity,
});
