import { createRequire } from 'node:module';
import { PaymentsError } from '../payments.errors.js';
import type { ApiCallerParts } from './api.caller.js';
import type { CallSpec } from './call.request.js';
import type { Caller } from './caller.js';
import type { ApiResponse } from './payments.api.js';

/** A {@link Caller} that is loaded with its first call, and not with the application. */
export class LazyCaller implements Caller {
  readonly #load: () => Promise<Caller>;
  #caller: Promise<Caller> | undefined;
  #closed = false;

  /** @param load is asked once, and again after it failed */
  constructor(load: () => Promise<Caller>) {
    this.#load = load;
  }

  async call<T>(companyId: string, spec: CallSpec): Promise<ApiResponse<T>> {
    return (await this.#loaded()).call<T>(companyId, spec);
  }

  /** Loads what the first call would wait for. */
  prepare(): void {
    // Where that fails, the first call says why.
    this.#loaded().catch(() => {});
  }

  async close(): Promise<void> {
    this.#closed = true;
    const caller = await this.#caller?.catch(() => undefined);
    await caller?.close();
  }

  async #loaded(): Promise<Caller> {
    if (this.#caller) return this.#caller;
    if (this.#closed) throw new PaymentsError('aborted', 'The application is closing');
    const loading = this.#load();
    this.#caller = loading;
    loading.catch(() => (this.#caller = undefined));
    return loading;
  }
}

/**
 * The caller of an application: with axios and undici it takes as long to load as all else of this package.
 *
 * @throws Error `MODULE_NOT_FOUND`, naming a package that it will need and that is not installed
 */
export function lazyApiCaller(parts: Omit<ApiCallerParts, 'http'>): LazyCaller {
  for (const name of ['@nestjs/axios', 'axios']) requireInstalled(name);
  return new LazyCaller(async () => {
    const [{ ApiCaller }, { HttpService }] = await Promise.all([
      import('./api.caller.js'),
      import('@nestjs/axios'),
    ]);
    // On an axios of its own: what an application adds to the global one is not for requests that carry tokens.
    return new ApiCaller({ ...parts, http: new HttpService(new HttpService().axiosRef.create()) });
  });
}

/** By `require`, since not every test runner has `import.meta.resolve`. */
function requireInstalled(name: string): void {
  try {
    createRequire(import.meta.url).resolve(name);
  } catch (error) {
    // One that is for `import` alone is there, too.
    if ((error as { code?: unknown }).code === 'MODULE_NOT_FOUND') throw error;
  }
}
