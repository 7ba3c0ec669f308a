import type { HttpService } from '@nestjs/axios';
import type { AxiosInstance } from 'axios';
import { PaymentsError } from '../../errors/payments-error.js';

/**
 * Creates an `HttpService` on an axios without defaults and interceptors: what an application adds to the global
 * axios must not see tokens. Imports both packages.
 */
export async function createHttpService(): Promise<HttpService> {
  const [{ HttpService }, { Axios }] = await Promise.all([
    import('@nestjs/axios'),
    import('axios'),
  ]);
  const axios = new Axios({});
  return new HttpService({ request: axios.request.bind(axios) } as AxiosInstance);
}

/** Names a package that is not installed, with the command that installs it; other errors stay as they are. */
export function explainImportError(error: unknown): unknown {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') return error;
  const name = /'([^']+)'/.exec(String(message))?.[1] ?? '@nestjs/axios axios';
  return new PaymentsError(
    'options_invalid',
    `Calling the payments service needs the package '${name}', which is not installed: npm install ${name}`,
  );
}
