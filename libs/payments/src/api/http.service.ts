import type { HttpService } from '@nestjs/axios';

/** Where the outgoing station gets Nest's `HttpService` from. Asked once for each lane, before its first request. */
export type HttpServiceSource = () => Promise<HttpService>;

/** Nest injection token of the {@link HttpServiceSource} in use. */
export const HTTP_SERVICE_SOURCE = Symbol('HTTP_SERVICE_SOURCE');

/**
 * Makes the {@link HttpServiceSource} of an application: `@nestjs/axios`, loaded when it is asked for, as axios alone
 * takes as long to load as all of this package. The axios is one of its own: what an application adds to the
 * global one is not for requests that carry tokens.
 *
 * @throws Error `ERR_MODULE_NOT_FOUND`, at boot still, naming the package that is not installed
 */
export function httpServiceSource(): HttpServiceSource {
  for (const name of ['@nestjs/axios', 'axios']) import.meta.resolve(name);
  return async () => {
    const { HttpService } = await import('@nestjs/axios');
    return new HttpService(new HttpService().axiosRef.create());
  };
}
