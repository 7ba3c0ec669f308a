import type { ResolvedCompany } from '../../companies/company.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { errorFacts } from '../../telemetry/observers.js';
import type { Observers } from '../../telemetry/observers.js';
import type { ApiResponse } from '../payments-api.js';
import type { ApiCall } from './api-call.js';
import { PaymentsApiError } from './api-error.js';
import type { CallRequest } from './call-request.js';

/** What {@link observeCall} needs in addition to the call. */
export interface ObservedCall {
  readonly company: ResolvedCompany;
  readonly request: CallRequest;
  readonly observers: Observers;
  readonly runtime: PaymentsRuntime;
}

/** Makes the call within a span, and reports its result to the observers. */
export async function observeCall(call: ApiCall, parts: ObservedCall): Promise<ApiResponse> {
  const { company, request, observers, runtime } = parts;
  const { method, pathTemplate: path } = request;
  const info = { company: company.id, method, path };
  const span = observers.tracing
    ? observers.span({ kind: 'call', baseUrl: company.baseUrl, ...info })
    : null;
  const startedAt = runtime.monotonic();
  const ended = (status: number | null, thrown?: unknown): void => {
    const { error, errorCode } =
      thrown === undefined ? { error: null, errorCode: null } : errorFacts(thrown);
    const { attempts } = call;
    const outcome = error === null ? 'succeeded' : 'failed';
    span?.end({ outcome, error, errorCode, status, attempts });
    const durationMs = runtime.monotonic() - startedAt;
    observers.notify('apiCallEnded', { ...info, status, errorCode, attempts, durationMs });
  };
  try {
    const response = await (span === null ? call.run() : span.run(() => call.run()));
    ended(response.status);
    return response;
  } catch (error) {
    ended(error instanceof PaymentsApiError ? (error.status ?? null) : null, error);
    throw error;
  }
}
