import type { AxiosRequestConfig } from 'axios';

/** What one request goes out on, as axios is told of it. */
export interface HttpWire {
  /** What axios needs to know to use it. */
  readonly config: AxiosRequestConfig;
  /** Whether it is certain that no byte of the request was sent. */
  readonly unsent: boolean;
}
