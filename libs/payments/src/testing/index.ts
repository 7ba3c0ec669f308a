export { inboxContract } from './contract/inbox.contract.js';
export type { InboxContractOptions, InboxUnderTest, ReadyCase } from './contract/inbox.contract.js';
export { signedDelivery } from './signed.delivery.js';
export type { DeliveryPayload, SignedDelivery, SigningCompany } from './signed.delivery.js';
