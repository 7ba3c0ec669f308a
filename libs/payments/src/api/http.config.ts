import type { HttpModuleOptions } from '@nestjs/axios';

/**
 * What every request of this package asks of axios; also the options of the `HttpModule` that provides it.
 *
 * - No redirects: one would carry `x-auth-token` to another host.
 * - No proxy from the environment: `HTTP_PROXY` set for something else would see the tokens. An application
 *   that needs a proxy hands in `agents`.
 * - Every status is an answer, and the body a stream: the caps and the parsing are this package's own, on the
 *   decompressed bytes, and axios neither throws for a status nor keeps a body in an error.
 *
 * @example
 * ```ts
 * imports: [HttpModule.register(paymentsHttpModuleOptions())]
 * ```
 */
export function paymentsHttpModuleOptions(): HttpModuleOptions {
  return {
    adapter: 'http',
    maxRedirects: 0,
    proxy: false,
    timeout: 0,
    decompress: true,
    responseType: 'stream',
    maxContentLength: Infinity,
    maxBodyLength: Infinity,
    validateStatus: () => true,
    transformRequest: [],
    transformResponse: [],
  };
}
