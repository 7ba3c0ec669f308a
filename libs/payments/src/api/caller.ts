import type { CallSpec } from './call.request.js';
import type { ApiResponse } from './payments.api.js';

/** What makes calls, for every company. */
export interface Caller {
  /** Makes one call. Rejects as {@link PaymentsApi} says. */
  call<T>(companyId: string, spec: CallSpec): Promise<ApiResponse<T>>;
  /** Ends what is under way, refuses further calls, closes connections: resolves when they are closed. */
  close(): Promise<void>;
}
