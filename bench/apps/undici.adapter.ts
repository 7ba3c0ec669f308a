import { AxiosError, AxiosHeaders } from 'axios';
import type { AxiosAdapter, InternalAxiosRequestConfig } from 'axios';
import { Pool } from 'undici';

/** Just enough of an axios adapter on undici to see what one would gain: texts, one host, no time-outs. */
export function undiciAdapter(origin: string): AxiosAdapter {
  const pool = new Pool(origin, { connections: 64 });
  return async (config: InternalAxiosRequestConfig) => {
    const { pathname, search } = new URL(config.url ?? '', config.baseURL);
    const { statusCode, headers, body } = await pool.request({
      method: (config.method ?? 'get').toUpperCase(),
      path: pathname + search,
      headers: config.headers.toJSON() as Record<string, string>,
      body: (config.data as string | undefined) ?? null,
    });
    const response = {
      status: statusCode,
      statusText: '',
      headers: new AxiosHeaders(headers as Record<string, string>),
      config,
      data: (await body.text()) as unknown,
    };
    if (config.validateStatus?.(statusCode) ?? true) return response;
    throw new AxiosError(`Answered ${statusCode}`, undefined, config, null, response);
  };
}
