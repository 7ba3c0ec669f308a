export { signedDelivery } from './signed.delivery.js';
export type { DeliveryPayload, SignedDelivery, SigningCompany } from './signed.delivery.js';
