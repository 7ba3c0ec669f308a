import type { DeliveryRecord } from '../deliveries/delivery.record.js';
import type { PaymentsEmulator } from '../payments-emulator.js';

/** What is printed once the emulator listens. The credentials are there to be copied. */
export function describeStart(emulator: PaymentsEmulator): string {
  const { company, baseUrl, productionBaseUrl } = emulator;
  return `payments-emulator
  sandbox     ${baseUrl}
  production  ${productionBaseUrl}
  pages       ${baseUrl}/emulator (deliveries, faults), ${baseUrl}/emulator/stk (STK push prompts)
  webhook     ${company.webhook.url ?? `none yet: PUT ${baseUrl}/emulator/companies/${company.companyId}/webhook`}
  seed        ${emulator.seed}

# sandbox
PAYMENTS_BASE_URL=${quote(baseUrl)}
PAYMENTS_CLIENT_ID=${quote(company.clientId)}
PAYMENTS_CLIENT_SECRET=${quote(company.clientSecret)}
PAYMENTS_WEBHOOK_SECRET=${quote(company.webhookSecret)}

# production: a token of one does not work on the other
# PAYMENTS_BASE_URL=${quote(productionBaseUrl)}
# PAYMENTS_CLIENT_ID=${quote(company.production.clientId)}
# PAYMENTS_CLIENT_SECRET=${quote(company.production.clientSecret)}
# PAYMENTS_WEBHOOK_SECRET=${quote(company.webhookSecret)}
`;
}

/** One line for one attempt. */
export function describeDelivery(delivery: DeliveryRecord): string {
  const { eventType, companyId, attempt, state, answer, failure, durationMs, faults } = delivery;
  return [
    eventType,
    companyId,
    `attempt ${attempt}`,
    state,
    answer?.status ?? (failure && failure.code !== state ? failure.code : ''),
    durationMs === undefined ? '' : `${durationMs} ms`,
    faults.length > 0 ? `(${faults.join(', ')})` : '',
  ]
    .filter((part) => part !== '')
    .join('  ');
}

/** In a form that a shell and a `.env` file both read. */
function quote(value: string): string {
  if (/^[\w./:@%+-]+$/.test(value)) return value;
  return value.includes("'") ? JSON.stringify(value) : `'${value}'`;
}
