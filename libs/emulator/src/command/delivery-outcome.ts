import type { DeliveryAttempt } from '../deliveries/delivery-attempt.js';

/** Maximum number of characters of a response body that the command prints. */
const PRINTED_BODY_LENGTH = 300;

export interface DeliveryOutcome {
  readonly text: string;
  readonly advice: string | undefined;
}

export function describeOutcome(delivery: DeliveryAttempt): DeliveryOutcome {
  const { state, request, response, failure, durationMs, faults } = delivery;
  if (request === undefined) {
    return { text: `${state}: ${failure?.message ?? ''}`, advice: adviseUnsent(delivery) };
  }
  const appliedFaults = faults.length > 0 ? ` (faults: ${faults.join(', ')})` : '';
  if (response === undefined) {
    const text = `${state}: ${request.url}: ${failure?.message ?? 'no response'}${appliedFaults}`;
    return { text, advice: adviseNoResponse(delivery) };
  }
  const text = `${state}: ${request.url} responded with ${response.status} in ${durationMs} ms${appliedFaults}`;
  if (state === 'delivered') return { text, advice: undefined };
  const body = response.body.replace(/\s+/g, ' ').trim().slice(0, PRINTED_BODY_LENGTH);
  return { text: body === '' ? text : `${text}: ${body}`, advice: adviseResponse(delivery) };
}

function adviseUnsent({ failure, companyId }: DeliveryAttempt): string | undefined {
  if (failure?.code === 'no_url') {
    return `start the emulator with --webhook-url http://127.0.0.1:3000/webhooks/payments, or PUT /emulator/companies/${companyId}/webhook with {"url":"…"}`;
  }
  if (failure?.code === 'inactive') {
    return `activate the webhook: PUT /emulator/companies/${companyId}/webhook with {"active":true}`;
  }
  if (failure?.code === 'dropped') {
    return "switch the fault off on the emulator's page, then send the event again";
  }
  return undefined;
}

function adviseNoResponse({ failure }: DeliveryAttempt): string | undefined {
  if (failure?.code === 'private_host') {
    return 'if the application listens at this address, start the emulator with --allow-private-webhooks';
  }
  if (failure?.code === 'timeout') {
    return "the application did not respond in time, for example because of a breakpoint or a slow handler. Redeliver the event on the emulator's page";
  }
  return 'check that the application runs and listens at this address, then send the event again';
}

/** The error code in the response of an application that uses nestjs-payments. */
export function codeOf({ response }: Pick<DeliveryAttempt, 'response'>): string | undefined {
  // The delivery log may contain only the start of the body.
  return /"code":"(\w+)"/.exec(response?.body ?? '')?.[1];
}

function adviseResponse({ response, faults, companyId }: DeliveryAttempt): string {
  if (faults.some((fault) => /^tamper|^oldSecret$/.test(fault))) {
    return "a fault of the emulator changed this delivery; switch the fault off on the emulator's page";
  }
  const { status = 0 } = response ?? {};
  const code = codeOf({ response });
  if (code === 'company_unknown') {
    return `the application has no company with the id at the end of the webhook URL: start the emulator with the --webhook-url of a company that the application has, or PUT /emulator/companies/${companyId}/webhook with {"url":"…"}`;
  }
  if (code === 'signature_missing' || code === 'signature_malformed') {
    return 'the header X-Webhook-Signature did not arrive as it was sent: check what a proxy between the emulator and the application does with headers';
  }
  if (code === 'signature_mismatch') {
    return 'the application does not accept the signature: its PAYMENTS_WEBHOOK_SECRET probably differs from the secret of this emulator. Restart the application with the settings that the emulator printed; --seed keeps them between starts';
  }
  if (status === 401 || status === 403) {
    return 'a guard, a proxy or a check of the application rejected the request before its signature was checked: exclude the path of the webhook from this guard, proxy or check. If the application checks signatures without nestjs-payments, compare the webhook secrets';
  }
  if (status === 404 || status === 405) {
    return "the application has no webhook at this path: start the emulator with the --webhook-url that the application uses, including a global prefix and the company's id";
  }
  if (status >= 300 && status < 400) {
    return 'redirects are not followed: start the emulator with the URL of the redirect as --webhook-url';
  }
  return "see the log of the application for the reason; the emulator's page can send the event again";
}
